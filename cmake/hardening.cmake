# Protections against exploits, and reproducible builds.
# Release builds use the protections of compilers and linkers; dev and sanitizer builds have better tools.  The cost, by
# one run of bench/compare_builds against the dev build (no protections, but assertions) on a Zen 4: 0.1 % in float32
# inference, 0.8 % in training, 1.6 % in int8.
include(CheckCCompilerFlag)
include(CheckLinkerFlag)

if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT EW_SANITIZE)
  # No absolute path of sources or build is stored in the program.
  add_compile_options(-ffile-prefix-map=${PROJECT_BINARY_DIR}=build -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
  foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection=full -mbranch-protection=standard)
    string(MAKE_C_IDENTIFIER "EW_CC${flag}" known)
    check_c_compiler_flag(${flag} ${known})
    if(${known})
      add_compile_options(${flag})
    endif()
  endforeach()
  add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
  # Full RELRO: relocations are resolved at start and are read-only before main begins.
  foreach(flag relro now noexecstack)
    check_linker_flag(C -Wl,-z,${flag} EW_LD_${flag})
    if(EW_LD_${flag})
      add_link_options(-Wl,-z,${flag})
    endif()
  endforeach()
  if(NOT EW_STATIC) # which is linked with -static-pie, and -pie would undo
    include(CheckPIESupported)
    check_pie_supported(LANGUAGES C)
  endif()
endif()
