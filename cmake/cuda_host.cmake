# The CUDA module executed on the host, for tests without a card (tests/cuda_host/README.md): the sources of the real
# one, with the device language, the runtime, cuDNN and cuBLASLt replaced.  It is built for tests alone and never
# installed.
#
# g++ is called by custom rules: as a CMake language, C++ would get the C compiler's warning flags.
find_program(EW_CXX NAMES g++ c++)
mark_as_advanced(EW_CXX)

# ew_cuda_host_module(TARGET FOLDER SOURCES): FOLDER has the emulation, SOURCES the module.
function(ew_cuda_host_module target folder sources)
  set(gen ${CMAKE_CURRENT_BINARY_DIR}/${target})
  set(into ${gen}/backend/cuda/module)
  file(MAKE_DIRECTORY ${into})
  # Products and sums are contracted as by nvcc, which shows where exact results rely on separate ones.  Vectors that are
  # not aligned, which a card does not load, trap.
  set(flags -std=c++17 -fPIC -fvisibility=hidden -g1 -D_GNU_SOURCE -DEW_CUDA_HOST -D__CUDA_ARCH__=900
    -ffp-contract=fast -fno-math-errno -Wall -Wextra -Wno-unknown-pragmas -Wno-unused-parameter -Wno-sign-compare)
  if(EW_WERROR)
    list(APPEND flags -Werror)
  endif()
  set(fast -O1 -fsanitize=alignment -fsanitize-undefined-trap-on-error)
  set(faster -O3)
  if(EW_SANITIZE)
    set(fast -O1 -fsanitize=${EW_SANITIZE} -fno-sanitize-recover=all -fsanitize-undefined-trap-on-error
      -fno-omit-frame-pointer)
    set(faster ${fast})
  endif()
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" AND EXISTS /proc/cpuinfo)
    file(STRINGS /proc/cpuinfo cpu REGEX "^flags.* avx2 .*" LIMIT_COUNT 1)
    if(cpu MATCHES " fma ")
      list(APPEND flags -march=haswell)
    endif()
  endif()
  set(launcher ${CMAKE_C_COMPILER_LAUNCHER})

  set(headers)
  file(GLOB found CONFIGURE_DEPENDS ${sources}/*.cuh)
  foreach(source IN LISTS found)
    get_filename_component(name ${source} NAME)
    add_custom_command(OUTPUT ${into}/${name} DEPENDS ${source} ${folder}/translate.awk
      COMMAND awk -f ${folder}/translate.awk ${source} > ${into}/${name} VERBATIM)
    list(APPEND headers ${into}/${name})
  endforeach()
  set(objects)
  file(GLOB kernels CONFIGURE_DEPENDS ${sources}/*.cu)
  file(GLOB emulation CONFIGURE_DEPENDS ${folder}/*.cpp)
  file(GLOB own CONFIGURE_DEPENDS ${folder}/*.h ${folder}/include/*.h)
  foreach(source IN LISTS kernels emulation)
    get_filename_component(name ${source} NAME_WE)
    set(code ${source})
    set(optimise ${faster})
    set(translate)
    if(source MATCHES "[.]cu$")
      set(code ${into}/${name}.cpp)
      set(optimise ${fast})
      set(translate COMMAND awk -f ${folder}/translate.awk ${source} > ${code})
    endif()
    add_custom_command(OUTPUT ${gen}/${name}.o
      DEPENDS ${source} ${headers} ${own} ${folder}/translate.awk ${sources}/../kernels.h ${sources}/../kernels_int8.h
      ${translate}
      COMMAND ${launcher} ${EW_CXX} ${flags} ${optimise} -I${gen} -I${folder}/include -I${folder}
              -I${PROJECT_SOURCE_DIR}/src -c ${code} -o ${gen}/${name}.o
      COMMENT "Building CUDA object ${name} for the host" VERBATIM)
    list(APPEND objects ${gen}/${name}.o)
  endforeach()
  find_package(Threads REQUIRED)
  file(GLOB files CONFIGURE_DEPENDS ${sources}/*.c)
  add_library(${target} MODULE ${files} ${objects})
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT TRUE)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${folder}/include)
  target_link_libraries(${target} PRIVATE Threads::Threads m stdc++)
endfunction()
