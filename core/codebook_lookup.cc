#include "core/codebook_lookup.h"

#include "common/instruction_set.h"

#ifdef ATOLL_X86_KERNELS
#include <immintrin.h>
#define ATOLL_TARGET_VBMI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")))
#endif

namespace atl {
namespace {

template <bool kAdd>
ATOLL_INLINE void Put(float value, float* out) {
  *out = kAdd ? *out + value : value;
}

/// Compilers make gathers of it, which take as long as so many loads.
template <bool kAdd>
struct LookUp {
  ATOLL_KERNEL void Run(const uint8_t* __restrict codes, const float* __restrict codebook, size_t n,
                        float* __restrict out) {
    for (size_t i = 0; i < n; ++i) Put<kAdd>(codebook[codes[i]], out + i);
  }
};

#ifdef ATOLL_X86_KERNELS

bool HasBytePermutes() {
  static const bool has = __builtin_cpu_supports("avx512vbmi");
  return has && ChosenInstructionSet() == InstructionSet::kAvx512;
}

/// Of 256 floats, the bytes of one significance: four registers.
struct BytePlane {
  __m512i part[4];
};

/// Byte `k` of each float. A permutation across two registers takes 32 of them from 32 floats.
ATOLL_TARGET_VBMI inline BytePlane PlaneOf(const float* codebook, int k) {
  alignas(64) uint8_t positions[64];
  for (int i = 0; i < 64; ++i) positions[i] = static_cast<uint8_t>(4 * (i % 32) + k);
  const __m512i index = _mm512_load_si512(positions);
  BytePlane plane;
  for (int quarter = 0; quarter < 4; ++quarter) {
    const float* const from = codebook + size_t{64} * static_cast<size_t>(quarter);
    const __m512i low =
        _mm512_permutex2var_epi8(_mm512_loadu_si512(from), index, _mm512_loadu_si512(from + 16));
    const __m512i high =
        _mm512_permutex2var_epi8(_mm512_loadu_si512(from + 32), index, _mm512_loadu_si512(from + 48));
    plane.part[quarter] = _mm512_mask_blend_epi64(0xf0, low, high);
  }
  return plane;
}

/// 64 bytes looked up at once: a permutation reads seven bits of a code, the eighth chooses between two.
ATOLL_INLINE ATOLL_TARGET_VBMI __m512i LookUpBytes(const BytePlane& plane, __m512i codes) {
  const __m512i below = _mm512_permutex2var_epi8(plane.part[0], codes, plane.part[1]);
  const __m512i above = _mm512_permutex2var_epi8(plane.part[2], codes, plane.part[3]);
  return _mm512_mask_blend_epi8(_mm512_movepi8_mask(codes), below, above);
}

template <bool kAdd>
ATOLL_INLINE ATOLL_TARGET_VBMI void PutVector(__m512i bits, float* out) {
  const __m512 values = _mm512_castsi512_ps(bits);
  _mm512_storeu_ps(out, kAdd ? _mm512_add_ps(_mm512_loadu_ps(out), values) : values);
}

/// Byte by byte of the floats, and then the bytes of each put together; how many values were done.
template <bool kAdd>
ATOLL_TARGET_VBMI size_t LookUpByBytes(const uint8_t* codes, const float* codebook, size_t n, float* out) {
  const BytePlane b0 = PlaneOf(codebook, 0);
  const BytePlane b1 = PlaneOf(codebook, 1);
  const BytePlane b2 = PlaneOf(codebook, 2);
  const BytePlane b3 = PlaneOf(codebook, 3);
  // Interleaving works within lanes of 16 bytes: codes are dealt so that neighbours come out as neighbours.
  const __m512i deal = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  size_t done = 0;
  for (; done + 64 <= n; done += 64) {
    const __m512i dealt = _mm512_maskz_permutexvar_epi32(0xffff, deal, _mm512_loadu_si512(codes + done));
    const __m512i low = LookUpBytes(b0, dealt);
    const __m512i second = LookUpBytes(b1, dealt);
    const __m512i third = LookUpBytes(b2, dealt);
    const __m512i high = LookUpBytes(b3, dealt);
    const __m512i lower_first = _mm512_unpacklo_epi8(low, second);
    const __m512i lower_last = _mm512_unpackhi_epi8(low, second);
    const __m512i upper_first = _mm512_unpacklo_epi8(third, high);
    const __m512i upper_last = _mm512_unpackhi_epi8(third, high);
    PutVector<kAdd>(_mm512_unpacklo_epi16(lower_first, upper_first), out + done);
    PutVector<kAdd>(_mm512_unpackhi_epi16(lower_first, upper_first), out + done + 16);
    PutVector<kAdd>(_mm512_unpacklo_epi16(lower_last, upper_last), out + done + 32);
    PutVector<kAdd>(_mm512_unpackhi_epi16(lower_last, upper_last), out + done + 48);
  }
  return done;
}

#endif

template <bool kAdd>
void LookUpAll(const uint8_t* codes, const float* codebook, size_t n, float* out) {
  size_t done = 0;
#ifdef ATOLL_X86_KERNELS
  if (HasBytePermutes()) done = LookUpByBytes<kAdd>(codes, codebook, n, out);
#endif
  RunKernel<LookUp<kAdd>>(codes + done, codebook, n - done, out + done);
}

}  // namespace

void LookUpCodes(const Codebook& codebook, const uint8_t* codes, size_t n, float* out) {
  LookUpAll<false>(codes, codebook.data(), n, out);
}

void AddLookedUp(const Codebook& codebook, const uint8_t* codes, float weight, size_t n, float* out) {
  // 256 products in place of n, each with the same bits.
  Codebook weighted;
  for (size_t code = 0; code < weighted.size(); ++code) weighted[code] = weight * codebook[code];
  LookUpAll<true>(codes, weighted.data(), n, out);
}

}  // namespace atl
