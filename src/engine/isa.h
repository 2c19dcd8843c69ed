/*!
 * \file isa.h
 * \brief The instruction set that oneDNN uses: the processor's, or less if the user limits it.
 */
#ifndef DNNL_BYOC_ENGINE_ISA_H_
#define DNNL_BYOC_ENGINE_ISA_H_

#include <oneapi/dnnl/dnnl.hpp>

namespace dnnl_byoc {

/*! \brief "AVX2", "AVX512_CORE_AMX", … */
const char* isa_name();

/*! \brief How many channels the blocks of oneDNN's blocked layouts have: as many as a vector. */
int channel_block();

/*! \brief Whether its instructions multiply and add in that data type. */
bool computes_in(dnnl::memory::data_type dtype);

/*! \brief Whether it multiplies bytes and adds them up in 32 bits, without saturating before. */
bool adds_up_whole_numbers();

/*! \brief Whether it does so in vectors of 64 bytes. */
bool has_avx512_vnni();

/*! \brief Whether it multiplies tiles of bytes and bf16, many times as fast as vectors. */
bool has_amx();

/*! \brief Whether oneDNN uses AVX2, or AVX-512, which has it. */
bool has_avx2();

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_ISA_H_
