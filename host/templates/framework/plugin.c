// Tells the processes of a framework how many nodes there are, which one they run on, and where the first one listens.
//
// Nothing is freed, because each call gets a new instance of the plugin.

#include <inttypes.h>
#include <stdio.h>

#include "guest.h"

// A string that is known when the plugin is compiled.
#define TEXT(text) (&(guest_string_t){(uint8_t *)(text), sizeof(text) - 1})

// The field of a pod that contains its index in its Job.
#define POD_INDEX "metadata.annotations['batch.kubernetes.io/job-completion-index']"
#define HOST_NAMES "spec.template.spec.network.enableDNSHostnames"
#define REPLICATED_JOBS "spec.template.spec.replicatedJobs"

// Finds the container that trains, with its pod set.
static bool find_trainer(pod_set_info_borrow_info_t info, pod_set_info_borrow_pod_set_t *pod_set,
                         pod_set_info_borrow_container_t *node) {
  pod_set_info_list_own_pod_set_t trainers;
  pod_set_info_method_info_with_ancestor(info, TEXT("trainer"), &trainers);
  if (trainers.len == 0) return false;
  *pod_set = pod_set_info_borrow_pod_set(trainers.ptr[0]);
  pod_set_info_own_container_t container;
  if (!pod_set_info_method_pod_set_container(*pod_set, TEXT("node"), &container)) return false;
  *node = pod_set_info_borrow_container(container);
  return true;
}

// Warns if the nodes cannot connect to the first one.
static void warn(context_borrow_context_t ctx, pod_set_info_borrow_info_t info, pod_set_info_borrow_pod_set_t pod_set) {
  if (!pod_set_info_method_info_has_host_names(info)) {
    context_method_context_warn(
        ctx,
        TEXT("is false, so trainyard-template-framework cannot find the first node by its DNS name; remove it, or set it "
             "to true"),
        TEXT(HOST_NAMES));
  }
  if (!pod_set_info_method_pod_set_is_indexed(pod_set)) {
    guest_string_t name, field;
    pod_set_info_method_pod_set_name(pod_set, &name);
    char text[256];
    snprintf(text, sizeof text, REPLICATED_JOBS "[%.*s].template.spec.completionMode", (int)name.len, (char *)name.ptr);
    guest_string_set(&field, text);
    context_method_context_warn(
        ctx,
        TEXT("is `NonIndexed`, so trainyard-template-framework cannot tell the nodes apart by their index; remove it, or "
             "set it to `Indexed`"),
        &field);
  }
}

bool exports_transform_transform(context_own_context_t context, types_failure_t *failure) {
  context_borrow_context_t ctx = context_borrow_context(context);
  pod_set_info_borrow_info_t info = pod_set_info_borrow_info(context_method_context_info(ctx));
  pod_set_info_borrow_pod_set_t pod_set;
  pod_set_info_borrow_container_t node;
  if (!find_trainer(info, &pod_set, &node)) {
    // Failures are freed by the generated code, so they are copies.
    guest_string_dup(&failure->message,
                     "trainyard-template-framework needs a container `node` in a replicated job with the label "
                     "`trainer.kubeflow.org/trainjob-ancestor-step: trainer`");
    failure->field.is_some = true;
    guest_string_dup(&failure->field.val, REPLICATED_JOBS);
    return false;
  }
  warn(ctx, info, pod_set);

  char text[300];
  guest_string_t value;
  context_method_context_because(ctx, TEXT("one process for each node"));
  snprintf(text, sizeof text, "%" PRIu32, pod_set_info_method_pod_set_address_count(pod_set));
  guest_string_set(&value, text);
  pod_set_info_method_container_put_env(node, TEXT("FRAMEWORK_NODES"), &value);
  context_method_context_because(ctx, TEXT("the pod's index in its Job"));
  pod_set_info_method_container_put_env_field(node, TEXT("FRAMEWORK_NODE"), TEXT(POD_INDEX));
  context_method_context_because(ctx, TEXT("the first node listens there"));
  job_borrow_job_t job = job_borrow_job(context_method_context_job(ctx));
  types_borrow_document_t config = types_borrow_document(job_method_job_config(job));
  // The schema in manifest.json has a default.
  int64_t port = 0;
  types_method_document_integer(config, TEXT("/port"), &port);
  guest_string_t address;
  pod_set_info_method_pod_set_address(pod_set, 0, 0, &address);
  snprintf(text, sizeof text, "%.*s:%" PRId64, (int)address.len, (char *)address.ptr, port);
  guest_string_set(&value, text);
  pod_set_info_method_container_put_env(node, TEXT("FRAMEWORK_ADDRESS"), &value);
  return true;
}
