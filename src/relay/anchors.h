/*!
 * \file anchors.h
 * \brief The Relay operators that become a node of their own.
 */
#ifndef DNNL_BYOC_RELAY_ANCHORS_H_
#define DNNL_BYOC_RELAY_ANCHORS_H_

#include <string>

#include "chain.h"

namespace dnnl_byoc {
namespace relay {

/*! \brief Everything that the translation of one call needs. */
struct Source {
  std::string op;
  ObjectRef call;
  ObjectRef attrs;
  Array<ObjectRef> args;
  GraphWriter* graph;
  const Resolve& resolve;

  int id(int arg) const { return resolve(args[arg]); }
  TensorType type(int arg) const { return tensor_type(args[arg]); }
  /*! \brief Refuses, with the operator's name in front. */
  template <typename... Args>
  void expect(bool holds, const Args&... message) const;
};

/*!
 * \brief The engine's node for a call: {"kind", "inputs", "attrs"}, not yet appended.
 * \throw Refusal if the operator, or this use of it, has no counterpart.
 */
GraphWriter::json translate_anchor(const Source& s);

/*! \brief The node for a bias or residual: (C,) along `axis` of `rank` dimensions → (C, 1, …). */
int align_channel(const Source& s, int tensor, int64_t channels, int64_t axis, int64_t rank);

}  // namespace relay
}  // namespace dnnl_byoc

#include "refusal.h"

template <typename... Args>
void dnnl_byoc::relay::Source::expect(bool holds, const Args&... message) const {
  if (!holds) refuse(op, ": ", message...);
}

#endif  // DNNL_BYOC_RELAY_ANCHORS_H_
