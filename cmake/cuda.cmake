# The CUDA module, libedgewise-cuda.so: kernels compiled by nvcc, and calls of cuDNN and cuBLASLt.  The library opens it
# at run time (src/backend/cuda/cuda_module.c), so nothing else is linked to CUDA.
#
# nvcc is called by custom rules: as a CMake language, CUDA would get the C compiler's warning flags.
ew_feature(CUDA "NVIDIA GPUs through CUDA and cuDNN")
set(EW_CUDA_ARCHITECTURES "" CACHE STRING
  "compute capabilities that kernels are compiled for (87;90), or all; empty: that of this machine's card, else PTX alone")
set(EW_HAVE_CUDA OFF)

# The sanitizers' memory layout conflicts with CUDA's driver.
if(EW_CUDA STREQUAL "AUTO" AND (EW_SANITIZE OR CMAKE_CROSSCOMPILING))
  return()
endif()
if(NOT EW_CUDA STREQUAL "OFF")
  find_program(EW_NVCC nvcc PATHS /usr/local/cuda/bin)
  get_filename_component(cuda_root "${EW_NVCC}" REALPATH)
  get_filename_component(cuda_root "${cuda_root}" DIRECTORY)
  get_filename_component(cuda_root "${cuda_root}" DIRECTORY)
  find_path(EW_CUDNN_INCLUDE cudnn.h PATHS ${cuda_root}/include)
  foreach(library cudnn cublasLt cudart_static)
    find_library(EW_CUDA_${library} ${library} PATHS ${cuda_root}/lib64 ${cuda_root}/lib)
    mark_as_advanced(EW_CUDA_${library})
  endforeach()
  mark_as_advanced(EW_NVCC EW_CUDNN_INCLUDE)
  set(found OFF)
  if(EW_NVCC AND EW_CUDNN_INCLUDE AND EW_CUDA_cudnn AND EW_CUDA_cublasLt AND EW_CUDA_cudart_static)
    set(found ON)
  endif()
  ew_feature_found(CUDA ${found} "CUDA toolkit with nvcc, cuDNN and cuBLAS (docs/jetson.md)")
endif()

# ew_cuda_card(OUT): compute capability of this machine's first card, such as 90; empty without a card.
function(ew_cuda_card out)
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
    OUTPUT_VARIABLE cards RESULT_VARIABLE status ERROR_QUIET)
  set(card "")
  if(status STREQUAL "0" AND cards MATCHES "^([0-9]+)\\.([0-9]+)")
    set(card ${CMAKE_MATCH_1}${CMAKE_MATCH_2})
  endif()
  set(${out} ${card} PARENT_SCOPE)
endfunction()

# ew_cuda_code(OUT): nvcc's -gencode flags: machine code for the requested capabilities that nvcc supports, and PTX of
# the last of them for newer cards.  Without a request only PTX, which the driver compiles when the module is opened.
function(ew_cuda_code out)
  set(all 72 75 80 87 89 90)
  set(wanted ${EW_CUDA_ARCHITECTURES})
  if(wanted STREQUAL "all")
    set(wanted ${all})
  elseif(NOT wanted)
    ew_cuda_card(wanted)
  endif()
  execute_process(COMMAND ${EW_NVCC} --list-gpu-arch OUTPUT_VARIABLE known)
  set(flags)
  set(last)
  foreach(arch IN LISTS wanted)
    if(known MATCHES "compute_${arch}\n")
      list(APPEND flags -gencode=arch=compute_${arch},code=sm_${arch})
      set(last ${arch})
    endif()
  endforeach()
  foreach(arch IN LISTS all)
    if(NOT last AND NOT EW_CUDA_ARCHITECTURES AND known MATCHES "compute_${arch}\n")
      set(last ${arch})
    endif()
  endforeach()
  if(NOT last)
    message(FATAL_ERROR "${EW_NVCC} compiles for none of ${wanted}")
  endif()
  set(${out} ${flags} -gencode=arch=compute_${last},code=compute_${last} PARENT_SCOPE)
endfunction()

# ew_cuda_module(TARGET FOLDER): the module from all .cu and .c files of a folder.
function(ew_cuda_module target folder)
  ew_cuda_code(code)
  # Test builds without a card never run it: it is compiled only for diagnostics, in a third of the time.
  set(optimise -O3)
  if(NOT code MATCHES "code=sm_" AND NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    set(optimise -Xcicc -O0)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cu)
  file(GLOB headers CONFIGURE_DEPENDS ${folder}/*.cuh ${folder}/../kernels.h)
  set(objects)
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/cuda/${name}.o)
    add_custom_command(OUTPUT ${object} DEPENDS ${source} ${headers}
      COMMAND ${EW_NVCC} -std=c++14 ${optimise} ${code} -ccbin ${CMAKE_C_COMPILER} -I${PROJECT_SOURCE_DIR}/src
              -Xcompiler=-fPIC,-fvisibility=hidden --expt-relaxed-constexpr -c ${source} -o ${object}
      COMMENT "Building CUDA object ${name}" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/cuda)
  file(GLOB files CONFIGURE_DEPENDS ${folder}/*.c)
  add_library(${target} MODULE ${files} ${objects})
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT TRUE)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(${target} SYSTEM PRIVATE ${EW_CUDNN_INCLUDE} ${cuda_root}/include)
  target_compile_options(${target} PRIVATE -Wno-deprecated-declarations) # cuDNN 8's calls, in 9
  target_link_libraries(${target} PRIVATE ${EW_CUDA_cudnn} ${EW_CUDA_cublasLt} ${EW_CUDA_cudart_static}
    Threads::Threads rt ${CMAKE_DL_LIBS} stdc++)
  target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME edgewise-cuda INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()
