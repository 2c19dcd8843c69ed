# python_query(<output> <code>): what the code prints in the Python environment that we build for,
# as a CMake list, one item a line; empty if the code fails. In an isolated build of pip's, that is
# the temporary environment with the build requirements.
function(python_query output code)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "${code}"
    WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}"
    OUTPUT_VARIABLE lines
    OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_QUIET)
  string(REPLACE "\n" ";" lines "${lines}")
  set(${output} "${lines}" PARENT_SCOPE)
endfunction()
