# ew_isa_objects(NAME FOLDER NAMES): compiles all C files of FOLDER's subfolders once per instruction set of the target
# machine, as object libraries NAME_<isa>, and appends their names to the list NAMES.  Each compilation defines
# EW_ISA=<isa>, the suffix of its symbols, and EW_ISA_<ISA>; the whole program sees EW_ISA_LIST as an X-macro list.
# Only the assembler is probed: the instruction set is chosen at run time.
#
# Float kernels may contract a*b+c to a fused multiply-add (they state a tolerance); nothing else may: integer kernels,
# int8/, round as their references do.
set(EW_ISA_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512)
set(EW_ISA_FLAGS_avx512vnni ${EW_ISA_FLAGS_avx512} -mavx512vnni -mavx512vbmi)
set(EW_ISA_FLAGS_avx2 -mavx2 -mfma)
set(EW_ISA_FLAGS_avx2vnni ${EW_ISA_FLAGS_avx2}) # its products are assembly: see int8_vec.h
set(EW_ISA_FLAGS_neon)
set(EW_ISA_FLAGS_neondot -march=armv8.2-a+dotprod)
set(EW_ISA_FLAGS_plain)

# Extensions for integers only, and the instruction set that they extend and whose float kernels they use.
set(EW_ISA_FLOAT_avx512vnni avx512)
set(EW_ISA_FLOAT_avx2vnni avx2)
set(EW_ISA_FLOAT_neondot neon)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(EW_ISAS avx512vnni avx512 avx2vnni avx2 plain)
  include(CheckCSourceCompiles)
  check_c_source_compiles(
    "int main(void) { __asm__(\"%{vex%} vpdpbusd %%ymm0, %%ymm0, %%ymm0\" ::: \"cc\"); return 0; }" EW_HAS_AVX_VNNI)
  if(NOT EW_HAS_AVX_VNNI) # assemblers before 2021
    list(REMOVE_ITEM EW_ISAS avx2vnni)
  endif()
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(EW_ISAS neondot neon) # every such machine has NEON
else()
  set(EW_ISAS plain)
endif()

# AVX-VNNI encodes AVX-512's byte dot product differently; processors with AVX-512 before 2024 lack it.  Tests compile
# the same kernels with AVX-512's encoding, so that they run there too.  Plain C is for machines without AVX2; the other
# instruction sets compile the same sources with -O3, so tests use -O1 for it.
option(EW_TEST_KERNELS "kernels for tests alone: avx2vnni encoded as AVX-512 does, plain C at -O1 beside AVX2" OFF)
if(EW_TEST_KERNELS)
  list(APPEND EW_ISA_FLAGS_avx2vnni -DEW_VNNI_EVEX=1)
endif()

# Sanitizers cover one instruction set, from the same sources: kernels are half of such a build, and on all instruction
# sets kernel tests use arrays between inaccessible pages.
if(EW_SANITIZE AND "avx2" IN_LIST EW_ISAS)
  set(EW_ISAS avx2)
endif()

# With sanitizers gcc takes a quarter of an hour for unrolled vector code at -O3.
set(EW_ISA_OPTIMISE -O3)
if(EW_SANITIZE)
  set(EW_ISA_OPTIMISE -O1)
endif()
# Checks of pointer arithmetic take a fifth of such kernels' time; the address sanitizer detects the access anyway.
if(EW_SANITIZE MATCHES "address" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
  list(APPEND EW_ISA_OPTIMISE -fno-sanitize=pointer-overflow,null,object-size)
endif()
if(EW_FUZZ) # for readers of files; clang takes as long as gcc even at -O1
  set(EW_ISA_OPTIMISE -O1 -fno-sanitize=all)
endif()

function(ew_isa_objects name folder names)
  file(GLOB all CONFIGURE_DEPENDS ${folder}/*/*.c)
  file(GLOB integer CONFIGURE_DEPENDS ${folder}/int8/*.c)
  set_source_files_properties(${integer} PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
  set(list ${${names}})
  set(text "/* Made by the build: the instruction sets that this target has, best first. */\n")
  foreach(isa IN LISTS EW_ISAS)
    set(float ${isa})
    set(files ${all})
    if(EW_ISA_FLOAT_${isa})
      set(float ${EW_ISA_FLOAT_${isa}})
      set(files ${integer} ${folder}/common/k_table.c)
    endif()
    set(optimise ${EW_ISA_OPTIMISE})
    if(EW_TEST_KERNELS AND isa STREQUAL "plain" AND "avx2" IN_LIST EW_ISAS)
      set(optimise -O1)
    endif()
    add_library(${name}_${isa} OBJECT ${files})
    target_link_libraries(${name}_${isa} PUBLIC ew_include)
    target_compile_options(${name}_${isa} PRIVATE ${optimise} -ffp-contract=fast
      $<$<C_COMPILER_ID:GNU>:-fno-tree-loop-distribute-patterns> ${EW_ISA_FLAGS_${isa}})
    target_compile_definitions(${name}_${isa} PRIVATE EW_ISA=${isa} EW_ISA_FLOAT=${float}
      EW_ISA_IS_${float}=1 $<$<NOT:$<STREQUAL:${isa},${float}>>:EW_ISA_IS_${isa}=1>)
    list(APPEND list ${name}_${isa})
    string(APPEND text "EW_ISA_ROW(${isa})\n")
  endforeach()
  set(${names} ${list} PARENT_SCOPE)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/gen/isa_list.h CONTENT "${text}" @ONLY)
endfunction()
