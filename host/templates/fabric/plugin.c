// Gives the nodes with accelerators network devices, and tells NCCL to use them.
//
// Nothing is freed, because each call gets a new instance of the plugin.

#include <inttypes.h>
#include <stdio.h>

#include "guest.h"

// A string that is known when the plugin is compiled.
#define TEXT(text) (&(guest_string_t){(uint8_t *)(text), sizeof(text) - 1})

// The extended resource of a network device. The claim and the grant name it, too.
#define NIC "example.com/nic"

bool exports_transform_transform(context_own_context_t context, types_failure_t *failure) {
  context_borrow_context_t ctx = context_borrow_context(context);
  job_borrow_job_t job = job_borrow_job(context_method_context_job(ctx));
  types_borrow_document_t config = types_borrow_document(job_method_job_config(job));
  // The schema in manifest.json has a default.
  int64_t number = 0;
  types_method_document_integer(config, TEXT("/devices"), &number);
  char digits[24];
  snprintf(digits, sizeof digits, "%" PRId64, number);
  guest_string_t devices;
  guest_string_set(&devices, digits);

  pod_set_info_list_own_pod_set_t nodes;
  pod_set_info_method_info_nodes(pod_set_info_borrow_info(context_method_context_info(ctx)), &nodes);
  for (size_t i = 0; i < nodes.len; i++) {
    pod_set_info_borrow_pod_set_t pod_set = pod_set_info_borrow_pod_set(nodes.ptr[i]);
    pod_set_info_own_container_t container;
    if (!pod_set_info_method_pod_set_container(pod_set, TEXT("node"), &container)) continue;
    pod_set_info_borrow_container_t node = pod_set_info_borrow_container(container);
    uint32_t accelerators;
    if (pod_set_info_method_pod_set_accelerators(pod_set, &accelerators) && accelerators == 0) continue;
    guest_string_t limit;
    if (!pod_set_info_method_container_limit(node, TEXT(NIC), &limit)) {
      context_method_context_because(ctx, TEXT("`devices` in the configuration of trainyard-template-fabric"));
      pod_set_info_method_container_set_limit(node, TEXT(NIC), &devices);
    }
    context_method_context_because(ctx, TEXT("a node with accelerators has network devices"));
    pod_set_info_method_container_default_env(node, TEXT("NCCL_IB_DISABLE"), TEXT("0"));
    pod_set_info_method_container_default_env(node, TEXT("NCCL_IB_HCA"), TEXT("nic"));
  }
  return true;
}
