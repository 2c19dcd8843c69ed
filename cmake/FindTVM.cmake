# Finds the headers of a TVM: in TVM_ROOT (variable or environment; a source tree or an installed
# tvm package), else in the Python environment. TVM is not imported: neither its libraries nor
# what its import needs have to be there to build against it. Nothing is cached.
#
#   TVM::dlpack    the DLPack header alone
#   TVM::runtime   the headers of TVM's runtime
#   TVM_VERSION    from the headers
include(FindPackageHandleStandardArgs)
include(PythonQuery)

if(NOT TVM_ROOT)
  set(TVM_ROOT "$ENV{TVM_ROOT}")
endif()
if(NOT TVM_ROOT)
  python_query(TVM_ROOT "
import importlib.util
print(*importlib.util.find_spec('tvm').submodule_search_locations, sep='\\n')")
endif()

set(_anchor include/tvm/runtime/c_runtime_api.h)
find_path(TVM_DIR ${_anchor} NO_CACHE NO_DEFAULT_PATH HINTS ${TVM_ROOT})
if(TVM_DIR)
  file(STRINGS "${TVM_DIR}/${_anchor}" _line REGEX "define TVM_VERSION")
  string(REGEX MATCH "[0-9.]+[0-9]" TVM_VERSION "${_line}")
endif()

find_package_handle_standard_args(TVM
  REQUIRED_VARS TVM_DIR
  VERSION_VAR TVM_VERSION
  HANDLE_VERSION_RANGE
  REASON_FAILURE_MESSAGE "the headers of TVM 0.19 not found: \
pip install xtc-tvm-python-bindings==0.19.0.12, or pass -DTVM_ROOT=<source tree or tvm package>")

if(TVM_FOUND)
  add_library(TVM::dlpack INTERFACE IMPORTED)
  target_include_directories(TVM::dlpack INTERFACE "${TVM_DIR}/3rdparty/dlpack/include")
  add_library(TVM::runtime INTERFACE IMPORTED)
  target_include_directories(TVM::runtime INTERFACE
    "${TVM_DIR}/include" "${TVM_DIR}/3rdparty/dmlc-core/include")
  target_link_libraries(TVM::runtime INTERFACE TVM::dlpack)
  # TVM's own logging in place of dmlc-core's, as in TVM's build.
  target_compile_definitions(TVM::runtime INTERFACE
    "DMLC_USE_LOGGING_LIBRARY=<tvm/runtime/logging.h>")
endif()
