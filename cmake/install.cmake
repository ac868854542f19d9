# Installation: program, libraries, headers, pkg-config file, man pages, completion.
if(NOT EW_STATIC) # that is the program alone
  install(TARGETS edgewise_static edgewise_shared
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/*.h)
  install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

  # Man pages of the C interface, generated from the headers.
  find_program(EW_AWK NAMES awk mawk gawk)
  mark_as_advanced(EW_AWK)
  if(EW_AWK)
    add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/gen/api.md
      COMMAND ${EW_AWK} -f ${PROJECT_SOURCE_DIR}/docs/api.awk ${headers} > ${PROJECT_BINARY_DIR}/gen/api.md
      DEPENDS ${headers} ${PROJECT_SOURCE_DIR}/docs/api.awk VERBATIM)
    add_custom_target(api_pages ALL DEPENDS ${PROJECT_BINARY_DIR}/gen/api.md)
    install(FILES ${PROJECT_BINARY_DIR}/gen/api.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
  endif()

  # Relative, so that the installed tree is relocatable.
  string(REGEX REPLACE "[^/]+" ".." EW_PC_UP ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  set(EW_PC_LIBS "-lm -ldl -pthread")
  if(EW_HAVE_STORE)
    set(EW_PC_LIBS "-lsqlite3 ${EW_PC_LIBS}")
  endif()
  if(EW_HAVE_ZLIB)
    set(EW_PC_LIBS "-lz ${EW_PC_LIBS}")
  endif()
  if(EW_HAVE_IMAGE)
    set(EW_PC_LIBS "-lpng -lturbojpeg ${EW_PC_LIBS}")
  endif()
  if(EW_HAVE_ONNX AND EW_HAVE_IMAGE)
    set(EW_PC_LIBS "-lprotobuf-c ${EW_PC_LIBS}")
  endif()
  configure_file(cmake/edgewise.pc.in ${PROJECT_BINARY_DIR}/gen/edgewise.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/gen/edgewise.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

  # Pure Python, independent of the version: where Debian looks.
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/edgewise DESTINATION lib/python3/dist-packages
    FILES_MATCHING PATTERN "*.py" PATTERN "py.typed")
endif()

install(FILES ${PROJECT_BINARY_DIR}/gen/edgewise.spdx.json DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The studies are embedded in the program too; as files they can be read and changed.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/share/studies DESTINATION ${CMAKE_INSTALL_DATADIR}/edgewise)
file(GLOB networks CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/share/models/*.onnx)
install(FILES ${networks} DESTINATION ${CMAKE_INSTALL_DATADIR}/edgewise/models)

# The option tables are in the program, so the documents need one that runs: cross builds without an emulator install
# none.
if(TARGET edgewise)
  install(TARGETS edgewise RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)
    set(made ${PROJECT_BINARY_DIR}/gen)
    add_custom_command(OUTPUT ${made}/edgewise.1 ${made}/edgewise.bash
      COMMAND ${CMAKE_COMMAND} "-DPROGRAM=${CMAKE_CROSSCOMPILING_EMULATOR};$<TARGET_FILE:edgewise>"
              -DIN=${PROJECT_SOURCE_DIR}/docs/edgewise.1.in -DOUT_DIR=${made}
              -DEW_VERSION=${PROJECT_VERSION} -P ${PROJECT_SOURCE_DIR}/cmake/docs.cmake
      DEPENDS edgewise docs/edgewise.1.in cmake/docs.cmake VERBATIM)
    add_custom_target(documents ALL DEPENDS ${made}/edgewise.1 ${made}/edgewise.bash)
    install(FILES ${made}/edgewise.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES ${made}/edgewise.bash RENAME edgewise
      DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${made}/_edgewise DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
    install(FILES ${made}/edgewise.fish
      DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  endif()
endif()
