# Finds apache-tvm-ffi, the interface of apache-tvm: in TVMFFI_ROOT (variable or environment; an
# installed tvm_ffi package), else in the Python environment. It is not imported. Nothing is cached.
#
#   TVMFFI::runtime   its headers; the symbols are those of the libtvm_ffi that a process has loaded
include(FindPackageHandleStandardArgs)
include(PythonQuery)

if(NOT TVMFFI_ROOT)
  set(TVMFFI_ROOT "$ENV{TVMFFI_ROOT}")
endif()
if(NOT TVMFFI_ROOT)
  python_query(TVMFFI_ROOT "
import importlib.util
print(*importlib.util.find_spec('tvm_ffi').submodule_search_locations, sep='\\n')")
endif()

find_path(TVMFFI_INCLUDE_DIR tvm/ffi/extra/module.h NO_CACHE NO_DEFAULT_PATH
          HINTS ${TVMFFI_ROOT} PATH_SUFFIXES include)

find_package_handle_standard_args(TVMFFI
  REQUIRED_VARS TVMFFI_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "the headers of tvm-ffi not found: pip install apache-tvm-ffi, \
or pass -DTVMFFI_ROOT=<tvm_ffi package>")

if(TVMFFI_FOUND)
  add_library(TVMFFI::runtime INTERFACE IMPORTED)
  target_include_directories(TVMFFI::runtime SYSTEM INTERFACE "${TVMFFI_INCLUDE_DIR}")
endif()
