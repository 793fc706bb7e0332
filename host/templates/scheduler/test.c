// Tests the plugin without a host. Each function of the contract that the plugin calls is defined here.

#include "test.h"

// The handles of the pod sets: a helper, nodes, a launcher that starts once these are ready, and other nodes that start after it.
enum { HELPER, NODE, LAUNCHER, SECOND, PODS };

static const char *names[] = {"helper", "node", "launcher", "second"};

// The pod set that has to be ready before each of these, or -1.
static int after[] = {-1, -1, NODE, LAUNCHER};

static uint32_t node_pods = 2;

// The label that is set for the nodes, or NULL.
static const char *own_label;

// The scheduler that is set for the nodes, or NULL.
static const char *own_scheduler;

job_own_job_t context_method_context_job(context_borrow_context_t ctx) { return (job_own_job_t){0}; }
types_own_document_t job_method_job_config(job_borrow_job_t job) { return (types_own_document_t){0}; }
bool types_method_document_text(types_borrow_document_t config, guest_string_t *pointer, guest_string_t *ret) {
  guest_string_set(ret, "batch-scheduler");
  return is(pointer, "/schedulerName");
}
bool types_method_document_json(types_borrow_document_t config, guest_string_t *pointer, guest_string_t *ret) {
  guest_string_set(ret, "\"research\"");
  return is(pointer, "/queue");
}

pod_set_info_own_info_t context_method_context_info(context_borrow_context_t ctx) { return (pod_set_info_own_info_t){0}; }
void pod_set_info_method_info_nodes(pod_set_info_borrow_info_t info, pod_set_info_list_own_pod_set_t *ret) {
  static pod_set_info_own_pod_set_t nodes[] = {{NODE}, {SECOND}};
  *ret = (pod_set_info_list_own_pod_set_t){nodes, 2};
}
void pod_set_info_method_info_pod_sets(pod_set_info_borrow_info_t info, pod_set_info_list_own_pod_set_t *ret) {
  static pod_set_info_own_pod_set_t all[] = {{HELPER}, {NODE}, {LAUNCHER}, {SECOND}};
  *ret = (pod_set_info_list_own_pod_set_t){all, PODS};
}
// Two pods in each pod set.
uint32_t pod_set_info_method_info_gang_members(pod_set_info_borrow_info_t info, guest_list_string_t *pod_sets) {
  return 2 * (uint32_t)pod_sets->len;
}
// Two of a resource that has the name of the pod set.
void pod_set_info_method_info_gang_requests(pod_set_info_borrow_info_t info, guest_list_string_t *pod_sets,
                                            pod_set_info_list_quantity_t *ret) {
  static types_quantity_t requests[2];
  assert(pod_sets->len <= 2);
  for (size_t i = 0; i < pod_sets->len; i++) {
    requests[i].resource = pod_sets->ptr[i];
    guest_string_set(&requests[i].amount, "2");
  }
  *ret = (pod_set_info_list_quantity_t){requests, pod_sets->len};
}
void pod_set_info_method_pod_set_name(pod_set_info_borrow_pod_set_t pod_set, guest_string_t *ret) {
  guest_string_set(ret, names[pod_set.__handle]);
}
void pod_set_info_method_pod_set_depends_on(pod_set_info_borrow_pod_set_t pod_set, pod_set_info_list_dependency_t *ret) {
  static types_dependency_t is_ready[PODS];
  int first = after[pod_set.__handle];
  types_dependency_t *own = &is_ready[pod_set.__handle];
  if (first >= 0) guest_string_set(&own->pod_set, names[first]);
  guest_string_set(&own->status, "Ready");
  *ret = (pod_set_info_list_dependency_t){own, first >= 0 ? 1 : 0};
}
uint32_t pod_set_info_method_pod_set_address_count(pod_set_info_borrow_pod_set_t pod_set) {
  return pod_set.__handle == NODE || pod_set.__handle == SECOND ? node_pods : 1;
}
bool pod_set_info_method_pod_set_pod_label(pod_set_info_borrow_pod_set_t pod_set, guest_string_t *key, guest_string_t *ret) {
  if (!own_label || pod_set.__handle != NODE) return false;
  guest_string_set(ret, own_label);
  return is(key, "scheduling.example.com/group");
}
bool pod_set_info_method_pod_set_scheduler_name(pod_set_info_borrow_pod_set_t pod_set, guest_string_t *ret) {
  if (!own_scheduler || pod_set.__handle != NODE) return false;
  guest_string_set(ret, own_scheduler);
  return true;
}

objects_own_objects_t context_method_context_objects(context_borrow_context_t ctx) { return (objects_own_objects_t){0}; }
void objects_method_objects_name(objects_borrow_objects_t objects, guest_string_t *api_version, guest_string_t *kind,
                                 guest_string_t *suffix, guest_string_t *maybe_content, guest_string_t *ret) {
  guest_string_set(ret, "bert");
}
objects_own_object_t objects_method_objects_emit(objects_borrow_objects_t objects, guest_string_t *api_version,
                                                 guest_string_t *kind, guest_string_t *suffix,
                                                 guest_string_t *maybe_content) {
  write_line("%.*s %.*s", SHOW(api_version), SHOW(kind));
  return (objects_own_object_t){0};
}

void context_method_context_warn(context_borrow_context_t ctx, guest_string_t *message, guest_string_t *maybe_field) {
  write_line("warning: %.*s: %.*s", SHOW(maybe_field), SHOW(message));
}
void context_method_context_because(context_borrow_context_t ctx, guest_string_t *text) {}
void pod_set_info_method_pod_set_set_pod_label(pod_set_info_borrow_pod_set_t pod_set, guest_string_t *key,
                                               guest_string_t *value) {
  write_line("%s: label %.*s=%.*s", names[pod_set.__handle], SHOW(key), SHOW(value));
}
void pod_set_info_method_pod_set_set_scheduler_name(pod_set_info_borrow_pod_set_t pod_set, guest_string_t *name) {
  write_line("%s: scheduler %.*s", names[pod_set.__handle], SHOW(name));
}
void objects_method_object_set_apply(objects_borrow_object_t group, guest_string_t *mode) {
  write_line("changes %.*s", SHOW(mode));
}
void objects_method_object_report_while(objects_borrow_object_t group, guest_string_t *state, guest_string_t *message) {}
void objects_method_object_set_body(objects_borrow_object_t group, guest_string_t *json) { write_line("%.*s", SHOW(json)); }

static void pods_have_the_label(void) {
  types_failure_t failure;
  assert(exports_transform_transform((context_own_context_t){0}, &failure));
  expect_written("node: label scheduling.example.com/group=bert\n"
                 "node: scheduler batch-scheduler\n"
                 "launcher: label scheduling.example.com/group=bert\n"
                 "launcher: scheduler batch-scheduler\n");
}

static void a_scheduler_that_is_set_stays(void) {
  own_scheduler = "own";
  *written = 0;
  types_failure_t failure;
  assert(exports_transform_transform((context_own_context_t){0}, &failure));
  expect_written("node: label scheduling.example.com/group=bert\n"
                 "launcher: label scheduling.example.com/group=bert\n"
                 "launcher: scheduler batch-scheduler\n");
}

// The scheduler keeps resources for the launcher, but does not wait for it.
static void the_group_counts_the_nodes(void) {
  *written = 0;
  types_failure_t failure;
  assert(exports_build_build((context_own_context_t){0}, &failure));
  expect_written("scheduling.example.com/v1 Group\n"
                 "changes while-suspended\n"
                 "{\"spec\":{\"minMembers\":2,\"resources\":{\"node\":\"2\",\"launcher\":\"2\"},\"queue\":\"research\"}}\n");
}

static void nodes_may_wait_for_other_pods(void) {
  after[NODE] = HELPER;
  the_group_counts_the_nodes();
  after[NODE] = -1;
}

static void a_group_without_members_is_refused(void) {
  node_pods = 0;
  *written = 0;
  types_failure_t failure;
  assert(!exports_transform_transform((context_own_context_t){0}, &failure));
  assert(failure.field.is_some && is(&failure.field.val, "spec.template.spec.replicatedJobs"));
  assert(!exports_build_build((context_own_context_t){0}, &failure));
  expect_written("");
  node_pods = 2;
}

static void the_label_of_another_group_is_replaced_with_a_warning(void) {
  own_label = "other";
  *written = 0;
  types_failure_t failure;
  assert(exports_transform_transform((context_own_context_t){0}, &failure));
  expect_written("warning: spec.template.spec.replicatedJobs[node].template.spec.template.metadata.labels"
                 "[scheduling.example.com/group]: is `other`, but the scheduler finds the pods of the group by `bert`, which "
                 "replaces it; remove it\n"
                 "node: label scheduling.example.com/group=bert\n"
                 "launcher: label scheduling.example.com/group=bert\n"
                 "launcher: scheduler batch-scheduler\n");
  own_label = NULL;
}

int main(void) {
  pods_have_the_label();
  a_scheduler_that_is_set_stays();
  the_group_counts_the_nodes();
  nodes_may_wait_for_other_pods();
  a_group_without_members_is_refused();
  the_label_of_another_group_is_replaced_with_a_warning();
  puts("6 tests passed");
}
