#include <tvm/runtime/object.h>

namespace {

struct Types : tvm::runtime::Object {
  using Object::GetOrAllocRuntimeTypeIndex;  // for derived classes only
};

}  // namespace

/*!
 * \brief TVMObjectTypeKey2Index(), but for a type that is not known it makes an index.
 *
 * TVM's own throws, and to say where, reads the symbols of all libraries in the process. Called by
 * tvm_dnnl_byoc/native.py.
 * \return 0
 */
extern "C" TVM_DLL int dnnl_byoc_type_index(const char* key, unsigned* index) {
  using tvm::runtime::TypeIndex;
  *index = Types::GetOrAllocRuntimeTypeIndex(key, TypeIndex::kDynamic, TypeIndex::kRoot, 0, true);
  return 0;
}
