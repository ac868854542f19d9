# Called by the build: cmake -DPROGRAM= -DIN= -DOUT_DIR= -DEW_VERSION= -P docs.cmake
# Generates edgewise.1, edgewise.bash, _edgewise and edgewise.fish from the program's option tables.
foreach(format man bash zsh fish)
  execute_process(COMMAND ${PROGRAM} help --format ${format}
    OUTPUT_FILE ${OUT_DIR}/${format}.txt RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "edgewise help --format ${format}: ${status}")
  endif()
endforeach()
file(READ ${OUT_DIR}/man.txt EW_COMMANDS)
string(STRIP "${EW_COMMANDS}" EW_COMMANDS)
configure_file(${IN} ${OUT_DIR}/edgewise.1 @ONLY)
configure_file(${OUT_DIR}/bash.txt ${OUT_DIR}/edgewise.bash COPYONLY)
configure_file(${OUT_DIR}/zsh.txt ${OUT_DIR}/_edgewise COPYONLY)
configure_file(${OUT_DIR}/fish.txt ${OUT_DIR}/edgewise.fish COPYONLY)
