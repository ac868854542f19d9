# The MPI module, libedgewise-mpi.so: calls of the installed MPI.  The library opens it at run time (src/train/ranks.c),
# so nothing else is linked to MPI and the program starts without it.
ew_feature(MPI "training by several ranks through MPI")
set(EW_HAVE_MPI OFF)

# MPI libraries keep memory that the leak sanitizer reports.
if(EW_MPI STREQUAL "AUTO" AND (EW_SANITIZE OR CMAKE_CROSSCOMPILING))
  return()
endif()
if(NOT EW_MPI STREQUAL "OFF")
  find_package(MPI QUIET COMPONENTS C)
  ew_feature_found(MPI "${MPI_C_FOUND}" "MPI (libopenmpi-dev)")
endif()

# ew_mpi_module(TARGET FILE): the module from one file.
function(ew_mpi_module target file)
  add_library(${target} MODULE ${file})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(${target} SYSTEM PRIVATE ${MPI_C_INCLUDE_DIRS})
  target_link_libraries(${target} PRIVATE ${MPI_C_LIBRARIES})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME edgewise-mpi INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()
