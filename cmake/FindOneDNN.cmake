# Finds oneDNN, in this order: DNNL_ROOT (variable or environment), CMAKE_PREFIX_PATH, the Python
# environment, the system. Nothing is cached: each configuration looks anew, since the environment
# of an isolated build is gone when the next one starts.
#
#   OneDNN::dnnl              the library
#   OneDNN_VERSION            from its headers
#   OneDNN_USER_LIBRARY_DIR   its directory if run paths must name it: not the Python environment's,
#                             whose place is known, and not one that the linker searches anyway
include(FindPackageHandleStandardArgs)
include(PythonQuery)

python_query(_python_prefixes "
import importlib.metadata, sys
header = 'include/oneapi/dnnl/dnnl_version.h'
for dist in importlib.metadata.distributions():
    if (dist.name or '').startswith('onednn'):
        for file in dist.files or ():
            if file.match(header):
                print(file.locate().resolve().parents[3])
print(sys.prefix)")

if(NOT DNNL_ROOT)
  set(DNNL_ROOT "$ENV{DNNL_ROOT}")
endif()
if(DNNL_ROOT)  # a wrong choice must fail, not fall back to another oneDNN
  set(_where HINTS "${DNNL_ROOT}" NO_DEFAULT_PATH)
else()
  set(_where HINTS ${_python_prefixes})
endif()
find_path(OneDNN_INCLUDE_DIR oneapi/dnnl/dnnl_version.h NO_CACHE ${_where} PATH_SUFFIXES include)
get_filename_component(_prefix "${OneDNN_INCLUDE_DIR}/.." ABSOLUTE)
find_library(OneDNN_LIBRARY dnnl NO_CACHE
             HINTS "${_prefix}" NO_DEFAULT_PATH PATH_SUFFIXES lib lib64)
find_library(OneDNN_LIBRARY dnnl NO_CACHE)  # Debian: /usr/include, but /usr/lib/<architecture>

if(OneDNN_INCLUDE_DIR)
  file(READ "${OneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h" _header)
  foreach(part MAJOR MINOR PATCH)
    string(REGEX MATCH "DNNL_VERSION_${part} +([0-9]+)" _ "${_header}")
    list(APPEND _version "${CMAKE_MATCH_1}")
  endforeach()
  list(JOIN _version "." OneDNN_VERSION)
  unset(_version)
endif()

find_package_handle_standard_args(OneDNN
  REQUIRED_VARS OneDNN_LIBRARY OneDNN_INCLUDE_DIR
  VERSION_VAR OneDNN_VERSION
  REASON_FAILURE_MESSAGE "oneDNN >= ${OneDNN_FIND_VERSION} not found: \
pip install onednn-devel-cpu-gomp==2023.2.0, or pass -DDNNL_ROOT=<prefix>")

if(OneDNN_FOUND)
  cmake_path(GET OneDNN_LIBRARY PARENT_PATH OneDNN_USER_LIBRARY_DIR)
  if(_prefix IN_LIST _python_prefixes
     OR OneDNN_USER_LIBRARY_DIR IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
    unset(OneDNN_USER_LIBRARY_DIR)
  endif()
  add_library(OneDNN::dnnl UNKNOWN IMPORTED)
  set_target_properties(OneDNN::dnnl PROPERTIES
    IMPORTED_LOCATION "${OneDNN_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${OneDNN_INCLUDE_DIR}")
endif()
