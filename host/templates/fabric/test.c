// Tests the plugin without a host. Each function of the contract that the plugin calls is defined here.

#include "test.h"

// The accelerators of the node, and its limit of network devices, or NULL.
static uint32_t accelerators;
static const char *limit;

job_own_job_t context_method_context_job(context_borrow_context_t ctx) { return (job_own_job_t){0}; }
types_own_document_t job_method_job_config(job_borrow_job_t job) { return (types_own_document_t){0}; }
bool types_method_document_integer(types_borrow_document_t config, guest_string_t *pointer, int64_t *ret) {
  *ret = 4;
  return is(pointer, "/devices");
}

pod_set_info_own_info_t context_method_context_info(context_borrow_context_t ctx) { return (pod_set_info_own_info_t){0}; }
void pod_set_info_method_info_nodes(pod_set_info_borrow_info_t info, pod_set_info_list_own_pod_set_t *ret) {
  static pod_set_info_own_pod_set_t node;
  *ret = (pod_set_info_list_own_pod_set_t){&node, 1};
}
bool pod_set_info_method_pod_set_container(pod_set_info_borrow_pod_set_t pod_set, guest_string_t *name,
                                           pod_set_info_own_container_t *ret) {
  *ret = (pod_set_info_own_container_t){0};
  return is(name, "node");
}
bool pod_set_info_method_pod_set_accelerators(pod_set_info_borrow_pod_set_t pod_set, uint32_t *ret) {
  *ret = accelerators;
  return true;
}
bool pod_set_info_method_container_limit(pod_set_info_borrow_container_t node, guest_string_t *resource, guest_string_t *ret) {
  if (!limit || !is(resource, "example.com/nic")) return false;
  guest_string_set(ret, limit);
  return true;
}

void context_method_context_because(context_borrow_context_t ctx, guest_string_t *text) {}
void pod_set_info_method_container_set_limit(pod_set_info_borrow_container_t node, guest_string_t *resource,
                                             guest_string_t *amount) {
  write_line("limit %.*s: %.*s", SHOW(resource), SHOW(amount));
}
void pod_set_info_method_container_default_env(pod_set_info_borrow_container_t node, guest_string_t *name,
                                               guest_string_t *value) {
  write_line("env %.*s: %.*s", SHOW(name), SHOW(value));
}

static void run(uint32_t node_accelerators, const char *node_limit) {
  accelerators = node_accelerators;
  limit = node_limit;
  *written = 0;
  types_failure_t failure;
  assert(exports_transform_transform((context_own_context_t){0}, &failure));
}

static void a_node_with_accelerators_has_devices(void) {
  run(8, NULL);
  expect_written("limit example.com/nic: 4\nenv NCCL_IB_DISABLE: 0\nenv NCCL_IB_HCA: nic\n");
}

static void a_node_without_accelerators_has_none(void) {
  run(0, NULL);
  expect_written("");
}

static void a_limit_that_is_set_stays(void) {
  run(8, "2");
  expect_written("env NCCL_IB_DISABLE: 0\nenv NCCL_IB_HCA: nic\n");
}

int main(void) {
  a_node_with_accelerators_has_devices();
  a_node_without_accelerators_has_none();
  a_limit_that_is_set_stays();
  puts("3 tests passed");
}
