// Tests the plugin without a host. Each function of the contract that the plugin calls is defined here.

#include "test.h"

// The name of the only container of the trainer.
static const char *container_name;

job_own_job_t context_method_context_job(context_borrow_context_t ctx) { return (job_own_job_t){0}; }
types_own_document_t job_method_job_config(job_borrow_job_t job) { return (types_own_document_t){0}; }
bool types_method_document_integer(types_borrow_document_t config, guest_string_t *pointer, int64_t *ret) {
  *ret = 4000;
  return is(pointer, "/port");
}

pod_set_info_own_info_t context_method_context_info(context_borrow_context_t ctx) { return (pod_set_info_own_info_t){0}; }
bool pod_set_info_method_info_has_host_names(pod_set_info_borrow_info_t info) { return true; }
void pod_set_info_method_info_with_ancestor(pod_set_info_borrow_info_t info, guest_string_t *ancestor,
                                            pod_set_info_list_own_pod_set_t *ret) {
  static pod_set_info_own_pod_set_t trainer;
  *ret = (pod_set_info_list_own_pod_set_t){&trainer, is(ancestor, "trainer") ? 1 : 0};
}
void pod_set_info_method_pod_set_name(pod_set_info_borrow_pod_set_t pod_set, guest_string_t *ret) {
  guest_string_set(ret, "node");
}
bool pod_set_info_method_pod_set_is_indexed(pod_set_info_borrow_pod_set_t pod_set) { return true; }
uint32_t pod_set_info_method_pod_set_address_count(pod_set_info_borrow_pod_set_t pod_set) { return 4; }
void pod_set_info_method_pod_set_address(pod_set_info_borrow_pod_set_t pod_set, uint32_t replica, uint32_t index,
                                         guest_string_t *ret) {
  assert(replica == 0 && index == 0);
  guest_string_set(ret, "bert-node-0-0.bert");
}
bool pod_set_info_method_pod_set_container(pod_set_info_borrow_pod_set_t pod_set, guest_string_t *name,
                                           pod_set_info_own_container_t *ret) {
  *ret = (pod_set_info_own_container_t){0};
  return is(name, container_name);
}

void context_method_context_because(context_borrow_context_t ctx, guest_string_t *text) {}
void context_method_context_warn(context_borrow_context_t ctx, guest_string_t *message, guest_string_t *maybe_field) {
  write_line("warning: %.*s", SHOW(message));
}
void pod_set_info_method_container_put_env(pod_set_info_borrow_container_t node, guest_string_t *name, guest_string_t *value) {
  write_line("%.*s=%.*s", SHOW(name), SHOW(value));
}
void pod_set_info_method_container_put_env_field(pod_set_info_borrow_container_t node, guest_string_t *name,
                                                 guest_string_t *path) {
  write_line("%.*s=%.*s", SHOW(name), SHOW(path));
}

static void nodes_know_the_first_one(void) {
  container_name = "node";
  types_failure_t failure;
  assert(exports_transform_transform((context_own_context_t){0}, &failure));
  expect_written("FRAMEWORK_NODES=4\n"
                 "FRAMEWORK_NODE=metadata.annotations['batch.kubernetes.io/job-completion-index']\n"
                 "FRAMEWORK_ADDRESS=bert-node-0-0.bert:4000\n");
}

static void a_runtime_without_the_container_is_refused(void) {
  container_name = "other";
  *written = 0;
  types_failure_t failure;
  assert(!exports_transform_transform((context_own_context_t){0}, &failure));
  assert(failure.field.is_some && is(&failure.field.val, "spec.template.spec.replicatedJobs"));
  expect_written("");
}

int main(void) {
  nodes_know_the_first_one();
  a_runtime_without_the_container_is_refused();
  puts("2 tests passed");
}
