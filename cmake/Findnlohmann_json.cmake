# Finds the header-only JSON reader nlohmann/json: in nlohmann_json_ROOT or CMAKE_PREFIX_PATH, else
# in the Python environment (the package nlohmann-json), else in the system.
#
#   nlohmann_json::nlohmann_json
include(FindPackageHandleStandardArgs)
include(PythonQuery)

python_query(_python_package "
import importlib.util
print(*importlib.util.find_spec('nlohmann_json').submodule_search_locations, sep='\\n')")

find_path(nlohmann_json_INCLUDE_DIR nlohmann/json.hpp NO_CACHE
          HINTS ${_python_package} PATH_SUFFIXES include)

find_package_handle_standard_args(nlohmann_json
  REQUIRED_VARS nlohmann_json_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "nlohmann/json.hpp not found: pip install nlohmann-json, \
or pass -Dnlohmann_json_ROOT=<prefix>")

if(nlohmann_json_FOUND)
  add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED)
  target_include_directories(nlohmann_json::nlohmann_json INTERFACE "${nlohmann_json_INCLUDE_DIR}")
endif()
