/*!
 * \file winograd_products.h
 * \brief The matrix products of Winograd's algorithm in floats.
 */
#ifndef DNNL_BYOC_ENGINE_OPS_WINOGRAD_PRODUCTS_H_
#define DNNL_BYOC_ENGINE_OPS_WINOGRAD_PRODUCTS_H_

#include <map>

#include "../kernels/winograd.h"
#include "op.h"

namespace dnnl_byoc {

/*! \brief With AVX-512 by a kernel of our own, else by oneDNN's. */
class WinogradProducts {
 public:
  /*! \param elements Of a tile: as many matrices. \param in, out Channels. */
  WinogradProducts(PlanBuilder& b, memory::dim elements, memory::dim in, memory::dim out);

  /*! \brief Whether so many tiles can be multiplied; emit() is for those that were prepared. */
  bool prepare(memory::dim tiles);

  /*! \brief Binds a node's weights; to be called before emit(). */
  void require_weights(const Node& node, int tile, const winograd::KernelSize& kernel);

  /*! \name What is multiplied, and the products. */
  ///@{
  memory::desc src_md(memory::dim tiles) const;
  memory::desc dst_md(memory::dim tiles) const;
  ///@}

  /*! \param src, dst Values. */
  void emit(memory::dim tiles, int src, int dst);

 private:
  winograd::Product product(memory::dim tiles) const;

  PlanBuilder& b_;
  const memory::dim elements_, in_, out_;
  const bool is_ours_;
  std::map<memory::dim, dnnl::matmul::primitive_desc> pds_;  // by tiles, of oneDNN's
  int weights_ = -1, starts_ = -1;
};

/*! \brief The matrices that a descriptor of either stands for. */
winograd::Matrices matrices_of(const memory::desc& md);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_OPS_WINOGRAD_PRODUCTS_H_
