// Tests the plugin without a host. Each function of the contract that the plugin calls is defined here.

#include "test.h"

// The handles of containers.
enum { NODE, ADDED };

// The name of the only container that the pods have.
static const char *container_name;

// Whether the runtime has a volume with the name of the plugin's.
static bool has_volume;

job_own_job_t context_method_context_job(context_borrow_context_t ctx) { return (job_own_job_t){0}; }
types_own_document_t job_method_job_config(job_borrow_job_t job) { return (types_own_document_t){0}; }
bool types_method_document_text(types_borrow_document_t config, guest_string_t *pointer, guest_string_t *ret) {
  guest_string_set(ret, "registry.example.com/sidecar:1");
  return is(pointer, "/image");
}

pod_set_info_own_info_t context_method_context_info(context_borrow_context_t ctx) { return (pod_set_info_own_info_t){0}; }
void pod_set_info_method_info_nodes(pod_set_info_borrow_info_t info, pod_set_info_list_own_pod_set_t *ret) {
  static pod_set_info_own_pod_set_t nodes;
  *ret = (pod_set_info_list_own_pod_set_t){&nodes, 1};
}
bool pod_set_info_method_pod_set_container(pod_set_info_borrow_pod_set_t pod_set, guest_string_t *name,
                                           pod_set_info_own_container_t *ret) {
  *ret = (pod_set_info_own_container_t){NODE};
  return is(name, container_name);
}

void pod_set_info_method_pod_set_name(pod_set_info_borrow_pod_set_t pod_set, guest_string_t *ret) {
  guest_string_set(ret, "node");
}
bool pod_set_info_method_pod_set_volume(pod_set_info_borrow_pod_set_t pod_set, guest_string_t *name,
                                        types_own_document_t *ret) {
  return has_volume && is(name, "sidecar");
}

void context_method_context_because(context_borrow_context_t ctx, guest_string_t *text) {}
void pod_set_info_method_pod_set_put_empty_dir(pod_set_info_borrow_pod_set_t pod_set, guest_string_t *name,
                                               guest_string_t *maybe_medium, guest_string_t *maybe_size_limit) {
  write_line("volume %.*s", SHOW(name));
}
pod_set_info_own_container_t pod_set_info_method_pod_set_add_init_container(pod_set_info_borrow_pod_set_t pod_set,
                                                                            guest_string_t *name, guest_string_t *image) {
  write_line("init container %.*s: %.*s", SHOW(name), SHOW(image));
  return (pod_set_info_own_container_t){ADDED};
}
void pod_set_info_method_container_set_restart_policy(pod_set_info_borrow_container_t container, guest_string_t *policy) {
  assert(container.__handle == ADDED);
  write_line("restarts: %.*s", SHOW(policy));
}
void pod_set_info_method_container_default_mount(pod_set_info_borrow_container_t container, types_mount_t *mount) {
  write_line("%s %s %.*s at %.*s", container.__handle == ADDED ? "sidecar" : "node", mount->read_only ? "reads" : "writes",
             SHOW(&mount->volume), SHOW(&mount->path));
}

static void run(const char *name) {
  container_name = name;
  *written = 0;
  types_failure_t failure;
  assert(exports_transform_transform((context_own_context_t){0}, &failure));
}

static void both_containers_share_a_volume(void) {
  run("node");
  expect_written("volume sidecar\n"
                 "node writes sidecar at /var/run/sidecar\n"
                 "init container sidecar: registry.example.com/sidecar:1\n"
                 "restarts: Always\n"
                 "sidecar reads sidecar at /var/run/sidecar\n");
}

static void pods_without_the_container_stay(void) {
  run("other");
  expect_written("");
}

static void a_volume_of_the_runtime_is_refused(void) {
  has_volume = true;
  container_name = "node";
  *written = 0;
  types_failure_t failure;
  assert(!exports_transform_transform((context_own_context_t){0}, &failure));
  assert(is(&failure.field.val, "spec.template.spec.replicatedJobs[node].template.spec.template.spec.volumes[sidecar].name"));
  expect_written("");
  has_volume = false;
}

int main(void) {
  both_containers_share_a_volume();
  pods_without_the_container_stay();
  a_volume_of_the_runtime_is_refused();
  puts("3 tests passed");
}
