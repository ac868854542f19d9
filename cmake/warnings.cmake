# Compile flags of all targets: warnings, sanitizers.
add_compile_definitions(_GNU_SOURCE)
add_compile_options(
  -ffp-contract=off -fno-math-errno -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wvla -Wformat=2
  -Wwrite-strings -Wcast-qual -Wcast-align -Wpointer-arith -Wimplicit-fallthrough -Wconversion
  -Wno-sign-conversion -Wdouble-promotion -Wfloat-equal -Wnull-dereference -Wno-unused-parameter
  -Wno-missing-field-initializers) # tables leave out what is zero, on purpose
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Wno-double-promotion) # it minds INFINITY and NAN, which gcc does not
  add_compile_options(-Wno-pass-failed) # UNROLL stands before loops whose length only some instances know
endif()
if(EW_WERROR)
  add_compile_options(-Werror)
endif()
if(EW_SANITIZE)
  add_compile_options(-fsanitize=${EW_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${EW_SANITIZE})
endif()

# Undefined behaviour traps instead of calling the reporting runtime, whose tables take longer to load than most
# commands run, and a tenth of the build time; the backtrace of the trap shows the line.  In either case every variable
# has a descriptor that points to it, so the program is linked without PIE, which avoids a hundred thousand relocations
# at each start.
set(EW_SANITIZER_SOURCE)
set(EW_SANITIZER_LINK)
if(EW_SANITIZE MATCHES "address" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fsanitize-undefined-trap-on-error)
  set(EW_SANITIZER_SOURCE ${PROJECT_SOURCE_DIR}/tests/sanitizer_options.c)
  set(EW_SANITIZER_LINK -no-pie)
endif()
if(EW_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
