/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of kernels: names as frameworks have them, and names that are an attack. */
#include "test.h"
#include "profile/page/kernel_label.h"

#define LAMBDAS(function)                                                                                    \
	"at::native::" function "(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#12}::"  \
	"operator()() const::{lambda(float)#1}"

/* clang-format off */
static const struct {
	const char *name, *label;
} known[] = {
	/* PyTorch */
	{"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)",
	 "vectorized_elementwise_kernel<4, FillFunctor<float>, …>"},
	{"void at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >(int, float)",
	 "vectorized_elementwise_kernel<8, MulFunctor<float>, …>"},
	{"void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<" LAMBDAS("direct_copy_kernel_cuda") ">(at::TensorIteratorBase&, " LAMBDAS("direct_copy_kernel_cuda") " const&)::{lambda(int)#1}>(int, float)",
	 "elementwise_kernel<128, 4, direct_copy_kernel_cuda::…>"},
	{"void at::native::unrolled<" LAMBDAS("neg_kernel_cuda") ">(int)", "unrolled<neg_kernel_cuda::{lambda(float)#1}>"},
	{"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4, 4> >(float)",
	 "reduce_kernel<512, 1, ReduceOp<float, sum_functor<…>>>"},
	{"void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, true, false>(float*, float const*, int)",
	 "softmax_warp_forward<float, float, float, 8, true, false>"},
	{"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<1>, at::native::(anonymous namespace)::BinaryOpScalarFunctor<float, 1, 1, 0>, std::plus<float>, float>(float)",
	 "multi_tensor_apply_kernel<TensorListMetadata<1>, …>"},
	{"void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, 4, 64, 64>(int)",
	 "CatArrayBatchedCopy<OpaqueType<2u>, unsigned int, 4, 64, 64>"},
	/* cuBLAS, cuDNN, CUB, Thrust */
	{"nvjet_hsh_128x128_64x4_1x2_h_bz_TNN", "nvjet_hsh_128x128_64x4_1x2_h_bz_TNN"},
	{"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
	 "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesiz…__5x_cublas"},
	{"std::enable_if<!(false), void>::type internal::gemvNSP_kernel<float, float, float, float, 1, 32, 4, 1024, cublasGemvParamsEx<int, float> >(cublasGemvParamsEx<int, float>)",
	 "gemvNSP_kernel<float, float, float, float, 1, 32, 4, …>"},
	{"void cudnn::fusion::compute_dot_do_o_specialized<true, 128>(void const*, void const*)", "compute_dot_do_o_specialized<true, 128>"},
	{"void cub::CUB_200700_900_NS::DeviceReduceKernel<cub::CUB_200700_900_NS::DeviceReducePolicy<float, unsigned int, cuda::std::__4::plus<void> >::Policy600, float const*, unsigned int, cuda::std::__4::plus<void>, float>(float*)",
	 "DeviceReduceKernel<Policy600, float const*, unsigned int, …>"},
	{"void thrust::THRUST_200302_900_NS::cuda_cub::core::_kernel_agent<thrust::THRUST_200302_900_NS::cuda_cub::__parallel_for::ParallelForAgent<thrust::for_each_f<X>, long>, long>(long)",
	 "_kernel_agent<ParallelForAgent<for_each_f<X>, long>, long>"},
	/* cutlass, flash-attention */
	{"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8>(cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8::Params)",
	 "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_25…3_tn_align8"},
	{"void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2, cute::tuple<cute::C<1>, cute::C<1> >, 128> > > >(flash::Params)",
	 "enable_sm90<FlashAttnFwdSm90<CollectiveMainloopFwdSm90<…>>>"},
	{"void flash::flash_fwd_kernel<flash::Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::bfloat16_t, flash::Flash_kernel_traits<128, 128, 64, 4, cutlass::bfloat16_t> >, false, true>(flash::Flash_fwd_params)",
	 "flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, …>>"},
	/* vLLM */
	{"void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 const&)), true>(c10::BFloat16*, c10::BFloat16 const*, int)",
	 "act_and_mul_kernel<BFloat16, &(BFloat16 silu_kernel<…>)>"},
	{"void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, (vllm::Fp8KVCacheDataType)0>(__nv_bfloat16 const*, long const*)",
	 "reshape_and_cache_flash_kernel<__nv_bfloat16, …>"},
	{"std::enable_if<((8)>(4))&&(true), void>::type vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long)",
	 "fused_add_rms_norm_kernel<BFloat16, 8>"},
	/* NCCL, XLA, CuPy, Triton */
	{"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"},
	{"loop_multiply_fusion_3", "loop_multiply_fusion_3"},
	{"wrapped-add.1", "wrapped-add.1"},
	{"cupy_add__float32_float32_float32", "cupy_add__float32_float32_float32"},
	{"triton_poi_fused_add_0", "triton_poi_fused_add_0"},
	{"triton_red_fused__to_copy_add_embedding_mean_mul_pow_rsqrt_unsqueeze_view_and_more_17", "triton_red_fused__to_copy_add_embedding_mean_mul…and_more_17"},
	/* What C++ can write */
	{"void a::f<(1)<(2), ((3)>>(1))>(int)", "f<(1)<(2), ((3)>>(1))>"},
	{"void a::f<decltype ((declval<a::A>)()->b)>(a::A)", "f<decltype ((declval<A>)()->b)>"},
	{"decltype (auto) a::f<int>(int)", "f<int>"},
	{"auto a::f<int>(int) -> decltype (a::g())", "f<int>"},
	{"a::Op::operator()(int) const", "Op::operator()"},
	{"void a::X::operator-><int>(int)", "X::operator-><int>"},
	{"void a::operator< <a::X>(a::X)", "a::operator<<X>"},
	{"void launch(int)::{lambda(float)#2}::operator()<a::K>(float) const", "launch::operator()<K>"},
	{"kernel(int) [clone .isra.0]", "kernel"},
	{"::f<::a>(int)", "f<a>"},
	{"void Größe::küß<ä::ö>(int)", "küß<ö>"},
	{"void f<a_functor_of_somebody_whose_name_is_so_long_that_it_cannot_fit>(int)", "f<a_functor_of_somebody_whose_name_is_so_long_that_it_cann…>"},
	{"void a_kernel_whose_name_alone_is_longer_than_any_label_may_ever_be_really<int>(int)", "a_kernel_whose_name_alone_is_longer_than_any_lab…r_be_really"},
	/* Mangled */
	{"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEEEEviT0_", "vectorized_elementwise_kernel<…>"},
	{"_Z7softmaxPf", "softmax"},
	{"_Z99999999999999999999999x", "_Z99999999999999999999999x"},
	/* No function */
	{"", ""},
	{"CUDA graph", "CUDA graph"},
	{"))>>}}", "))>>}}"},
	{"void f<int", "void f<int"},
	{"a\nb\x1b[2J", "a b [2J"},
	{"\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd"},
};
/* clang-format on */

static void assert_label(const char *name, size_t width, const char *want)
{
	struct text label = {0};

	kernel_label(&label, name, width);
	assert_false(label.failed);
	if (strcmp(text_str(&label), want))
		fail_msg("%.200s\n  is %s\n  not %s", name, text_str(&label), want);
	text_release(&label);
}

static void test_label__names_of_frameworks(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		assert_label(known[i].name, KERNEL_LABEL_WIDTH, known[i].label);
}

static void test_label__a_narrow_one_is_cut_sooner(void **state)
{
	(void)state;
	assert_label(known[0].name, 44, "vectorized_elementwise_kernel<4, …>");
	assert_label(known[0].name, 20, "vectorized_eleme…nel");
	assert_label("void f<ns::A, ns::B, ns::C, ns::D>(int)", 16, "f<A, B, C, D>");
	assert_label("void f<ns::A, ns::B, ns::C, ns::D, ns::E>(int)", 16, "f<A, B, C, D, E>");
	assert_label("void f<ns::A, ns::B, ns::C, ns::D, ns::E, g>(int)", 16, "f<A, B, C, D, …>");
}

static size_t characters(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

/* A part again and again, between a begin and an end. */
static char *repeated(const char *begin, const char *part, size_t times, const char *end)
{
	struct text all = {0};

	text_add(&all, begin);
	for (size_t i = 0; i < times; i++)
		text_add(&all, part);
	text_add(&all, end);
	assert_false(all.failed);
	return all.data;
}

/* Quadratic time would be more than the test has. */
static void test_label__long_names_are_an_attack_in_vain(void **state)
{
	static const char *const parts[] = {
		"a", "::", "<", ">", "(", ")", "{", "}", "a<", "a(", "a::", "a,", "1a", "a<b>::", "a()::{lambda()#1}::", "operator()",
		" ", "-", "native::AUnaryFunctor<a>,", "ü", "\xff", "a<a>::{", "f()::operator<", "(anonymous namespace)::", ") -> "};
	static const char *const begins[] = {"", "void f<", "_Z", "_ZN", "void cutlass::Kernel<"};
	enum { SIZE = 300000 };

	(void)state;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		for (size_t b = 0; b < sizeof(begins) / sizeof(begins[0]); b++) {
			char *name = repeated(begins[b], parts[i], SIZE / strlen(parts[i]), b == 1 ? ">(int)" : "");
			struct text label = {0};

			kernel_label(&label, name, KERNEL_LABEL_WIDTH);
			assert_false(label.failed);
			assert_in_range(characters(text_str(&label)), 1, KERNEL_LABEL_WIDTH);
			text_release(&label);
			free(name);
		}
}

/* Arguments as deep as templates of real libraries are, and deeper: then the name is shown as it is. */
static void test_label__depth_is_bounded(void **state)
{
	char *name = repeated("void f<", "ns::b<", 40, "int");
	char *closed = repeated(name, ">", 40, ">(int)");

	(void)state;
	assert_label(closed, 24, "f<b<b<b<b<b<b<…>>>>>>>");
	free(closed);
	free(name);
	name = repeated("void f<", "ns::b<", 100, "int");
	closed = repeated(name, ">", 100, ">(int)");
	assert_label(closed, 24, "void f<ns::b<ns::b<…int)");
	free(closed);
	free(name);
}

static void test_labels__rows_of_a_table_are_told_apart(void **state)
{
	struct kernel_labels all = {0};

	(void)state;
	assert_string_equal(kernel_labels_add(&all, "void a::f<int>(int)", 60), "f<int>");
	assert_string_equal(kernel_labels_add(&all, "void b::f<int>(int)", 60), "f<int> #2");
	assert_string_equal(kernel_labels_add(&all, "g", 60), "g");
	assert_string_equal(kernel_labels_add(&all, "f<int> #3", 60), "f<int> #3");
	assert_string_equal(kernel_labels_add(&all, "void c::f<int>(int)", 60), "f<int> #4");
	assert_int_equal(all.count, 5);
	kernel_labels_release(&all);
	assert_int_equal(all.count, 0);
	assert_string_equal(kernel_labels_add(&all, "void b::f<int>(int)", 60), "f<int>");
	kernel_labels_release(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_label__names_of_frameworks),
		cmocka_unit_test(test_label__a_narrow_one_is_cut_sooner),
		cmocka_unit_test(test_label__long_names_are_an_attack_in_vain),
		cmocka_unit_test(test_label__depth_is_bounded),
		cmocka_unit_test(test_labels__rows_of_a_table_are_told_apart),
	};

	return cmocka_run_group_tests_name("profile_label", tests, NULL, NULL);
}
