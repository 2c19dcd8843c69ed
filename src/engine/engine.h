/*!
 * \file engine.h
 * \brief The C ABI of the engine: a JSON graph in, oneDNN primitives run on DLTensors out.
 *
 * The engine knows nothing of TVM. No exception crosses this boundary: every function returns a
 * dnnl_byoc_status_t, and dnnl_byoc_last_error() gives the text of the calling thread's last
 * failure. The JSON format is documented in graph.h.
 */
#ifndef DNNL_BYOC_ENGINE_ENGINE_H_
#define DNNL_BYOC_ENGINE_ENGINE_H_

#include <dlpack/dlpack.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DNNL_BYOC_API __attribute__((visibility("default")))

/*! \brief What a call came to. */
typedef enum {
  dnnl_byoc_success = 0,
  /*! \brief The caller's fault: malformed JSON, wrong shape, dtype, or number of tensors. */
  dnnl_byoc_invalid_argument = 1,
  /*! \brief A valid graph that oneDNN has no (or only a reference) implementation for. */
  dnnl_byoc_unsupported = 2,
  /*! \brief Anything else: out of memory, an error inside oneDNN. */
  dnnl_byoc_runtime_error = 3,
} dnnl_byoc_status_t;

/*! \brief One graph with its constants; safe to run from many threads at once. */
typedef struct dnnl_byoc_engine* dnnl_byoc_engine_t;

/*!
 * \brief Parses a graph. One that has no constants is compiled at once, others when they arrive;
 * a dynamic one is compiled for the sizes of each run, see graph.h.
 * \param json The graph, zero-terminated.
 * \param engine Receives the engine; to be released with dnnl_byoc_destroy().
 */
DNNL_BYOC_API dnnl_byoc_status_t dnnl_byoc_create(const char* json, dnnl_byoc_engine_t* engine);

/*! \brief Where data that oneDNN's kernels read begins: at a multiple of so many bytes. */
enum { dnnl_byoc_alignment = 64 };

/*!
 * \brief Compiles the graph and repacks the constants into the layouts that primitives want.
 *
 * Those that lie so already, as what dnnl_byoc_pack() made, are used where they are if they are
 * aligned. The caller keeps all tensors, unchanged, until the engine is destroyed; they are only
 * read. Calling it again is harmless and does nothing, so that threads may race to initialise one
 * engine; its tensors are not needed.
 * \param constants In the order of the graph's "constants"; compact and on the CPU.
 */
DNNL_BYOC_API dnnl_byoc_status_t dnnl_byoc_set_constants(dnnl_byoc_engine_t engine,
                                                         const DLTensor* const* constants,
                                                         size_t count);

/*! \brief Receives constant number `index`, as a vector that is gone after the call. */
typedef void (*dnnl_byoc_store_t)(void* context, size_t index, const DLTensor* constant);

/*! \brief What is to be chosen by measurement. */
typedef enum {
  dnnl_byoc_tune_nothing = 0, /*!< oneDNN's choice */
  dnnl_byoc_tune_layouts = 1, /*!< the convolutions' layout, the chunks of a batch, and which of
                                   oneDNN's implementations runs each node */
  dnnl_byoc_tune_all = 2,     /*!< and which convolutions use Winograd's algorithm */
} dnnl_byoc_tune_t;

/*!
 * \brief Prepares a graph for this machine once, so that loading it need not: repacks the
 * constants.
 *
 * \param json The graph.
 * \param constants Its constants.
 * \param tune What to choose by measurement; each choice takes seconds.
 * \param packed Receives the graph with what was found, and with the layouts of the constants that
 *   were repacked. Owned by the calling thread, valid until its next call of this function.
 * \param store Called with each of those; the others stay as they are.
 * \param context Passed on to `store`.
 */
DNNL_BYOC_API dnnl_byoc_status_t dnnl_byoc_pack(const char* json, const DLTensor* const* constants,
                                                size_t count, dnnl_byoc_tune_t tune,
                                                const char** packed, dnnl_byoc_store_t store,
                                                void* context);

/*!
 * \brief Runs the graph. Thread-safe: concurrent calls work in execution contexts of their own.
 *
 * A dynamic graph is compiled once for each set of input shapes, as long as its plan is among the
 * DNNL_BYOC_PLANS (by default 64) that were used last. All plans share constants and memory.
 * \param inputs In the order of the graph's "inputs"; compact and on the CPU; never written to.
 * They do not overlap with outputs, of which a part may be written before an input is read.
 * \param outputs In the order of the graph's "outputs"; written in place, without a copy.
 */
DNNL_BYOC_API dnnl_byoc_status_t dnnl_byoc_run(dnnl_byoc_engine_t engine,
                                               const DLTensor* const* inputs, size_t num_inputs,
                                               DLTensor* const* outputs, size_t num_outputs);

/*!
 * \brief Tells the shapes of the outputs for inputs of given shapes.
 *
 * Of a dynamic graph, it compiles the plan if there is none for these shapes, so that the run that
 * follows finds it.
 * \param input_shapes For each input its shape: a vector of int64, on the CPU.
 * \param output_shapes For each output such a vector, of its rank, which receives its shape.
 */
DNNL_BYOC_API dnnl_byoc_status_t dnnl_byoc_infer_shapes(dnnl_byoc_engine_t engine,
                                                        const DLTensor* const* input_shapes,
                                                        size_t num_inputs,
                                                        DLTensor* const* output_shapes,
                                                        size_t num_outputs);

/*! \brief How many inputs and outputs dnnl_byoc_run() expects. */
DNNL_BYOC_API dnnl_byoc_status_t dnnl_byoc_arity(dnnl_byoc_engine_t engine, size_t* num_inputs,
                                                 size_t* num_outputs);

/*! \brief Releases an engine; NULL is allowed. No call on it may be under way. */
DNNL_BYOC_API void dnnl_byoc_destroy(dnnl_byoc_engine_t engine);

/*!
 * \brief Whether oneDNN has a fast implementation for every node of a graph, on this machine.
 *
 * Creates primitive descriptors only: no code generation, no constants needed. A dynamic graph is
 * judged by a few sizes.
 * \return dnnl_byoc_success, or dnnl_byoc_unsupported with the reason in dnnl_byoc_last_error().
 */
DNNL_BYOC_API dnnl_byoc_status_t dnnl_byoc_supports(const char* json);

/*!
 * \brief In which layout a result would lie that need not be row-major: what oneDNN prefers.
 *
 * Creates primitive descriptors only, as dnnl_byoc_supports(). The graph is not dynamic.
 * \param output Number of the result.
 * \param tag Receives oneDNN's name of the format tag, "aBcd16b", "acdb", …; "strided" or "blocked"
 *   for what has none. Owned by the calling thread, valid until its next call of this function.
 */
DNNL_BYOC_API dnnl_byoc_status_t dnnl_byoc_result_layout(const char* json, size_t output,
                                                         const char** tag);

/*!
 * \brief Describes the compiled plan and times its steps, as JSON.
 *
 * \param runs How often to run the plan on made-up inputs; 0 describes it without running.
 * \param json Receives {"steps": [{"kind", "impl", "layouts", "dtypes", "bytes", "post_ops",
 *   "ms"}...], "reorders", "chunks", "threads", "adapts", "arena_bytes", "scratchpad_bytes",
 *   "constant_bytes", "repacked_bytes", "ms"}. "ms" are medians. All is of one chunk, on one
 * thread, if there are several. "threads" is how many the last run could use; if it "adapts", that
 * is one less where this was faster on a crowded machine. Of a dynamic graph, it is the plan that
 * was used last, but "repacked_bytes" is that of all plans; besides there are "plans", how many it
 * keeps, and "compiled", how many it has compiled so far, and before the first run there are no
 * "steps". Owned by the calling thread, valid
 * until its next call of this function.
 */
DNNL_BYOC_API dnnl_byoc_status_t dnnl_byoc_profile(dnnl_byoc_engine_t engine, int runs,
                                                   const char** json);

/*! \brief {"onednn": "3.2.0", "isa": "AVX512_CORE_AMX", "runtime": "OMP"} as JSON. */
DNNL_BYOC_API const char* dnnl_byoc_build_info(void);

/*! \brief The text of the calling thread's last failure; "" if there was none. */
DNNL_BYOC_API const char* dnnl_byoc_last_error(void);

#ifdef __cplusplus
}
#endif
#endif  // DNNL_BYOC_ENGINE_ENGINE_H_
