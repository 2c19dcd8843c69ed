/*!
 * \file layout.h
 * \brief Memory descriptors: making them, naming them, and which ones are worth a try.
 */
#ifndef DNNL_BYOC_ENGINE_LAYOUT_H_
#define DNNL_BYOC_ENGINE_LAYOUT_H_

#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>
#include <vector>

namespace dnnl_byoc {

using dnnl::memory;

/*! \brief A row-major memory descriptor; a scalar becomes a vector of one, oneDNN's least rank. */
memory::desc plain_md(const memory::dims& shape, memory::data_type dtype);

/*! \brief A memory descriptor whose layout oneDNN chooses. */
memory::desc any_md(const memory::dims& shape, memory::data_type dtype);

/*! \brief Another shape in the layout of `md`, e.g. channels-last; plain if it has no tag. */
memory::desc same_layout(const memory::desc& md, const memory::dims& shape);

/*! \brief Whether the elements of both lie at the same places, counted in elements. */
bool lie_alike(const memory::desc& a, const memory::desc& b);

/*! \brief Another data type in the layout of `md`; plain if it is another one and has no tag. */
memory::desc with_dtype(const memory::desc& md, memory::data_type dtype);

/*!
 * \brief The same memory in another shape; none if no descriptor says that.
 *
 * As oneDNN's own reshape; besides, a dimension of channels and the dimensions of their blocks,
 * (N, C, …) and (N, C / block, block, …), become each other.
 */
std::optional<memory::desc> reshaped(const memory::desc& md, const memory::dims& shape);

/*!
 * \brief Layouts in which a primitive may be tried that follows its producer's: first `md` itself.
 *
 * The others are there for primitives that have no fast implementation for the first.
 */
std::vector<memory::desc> layout_candidates(const memory::desc& md);

/*! \brief What the convolutions of a graph may be asked to agree on. */
enum class DataLayout {
  any,            // each as oneDNN chooses
  channels_last,  // acb, acdb, acdeb
  blocked,        // aBc16b, … in blocks of channel_block() channels
};

/*! \brief "any", "channels_last", "blocked", as in the JSON. */
const char* data_layout_name(DataLayout layout);
std::optional<DataLayout> data_layout_named(const std::string& name);

/*! \brief A descriptor in that layout; none for `any`, and where there is no such layout. */
std::optional<memory::desc> data_md(DataLayout layout, const memory::dims& shape,
                                    memory::data_type dtype);

/*! \brief Which of them a descriptor's is; `any` if it is another. */
DataLayout data_layout_of(const memory::desc& md);

/*! \brief Whether the elements lie in memory as they would in row-major order. */
bool is_row_major(const memory::desc& md);

/*! \brief oneDNN's name of the format tag, "acdb", "ABcd16b16a", …; "" if there is none. */
std::string tag_name(const memory::desc& md);

/*! \brief A descriptor by its tag's name; none if oneDNN has no such tag for the shape. */
std::optional<memory::desc> tagged_md(const memory::dims& shape, memory::data_type dtype,
                                      const std::string& tag);

/*! \brief A tag's name; "strided" or "blocked" for what has none, "none" for what is empty. */
std::string layout_name(const memory::desc& md);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_LAYOUT_H_
