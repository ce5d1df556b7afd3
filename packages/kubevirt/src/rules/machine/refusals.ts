import type { MachinePlan } from './machine-plan.ts';
import type { PlanContext } from './plan-context.ts';

/** Names what no other configurator looked at: asked for, accepted by the API, not offered by this node. */
export function refuseRest({ vmi }: PlanContext, plan: MachinePlan): void {
  const { spec } = vmi;
  const { domain } = spec;
  const { devices, cpu, memory } = domain;
  const asked: readonly [unknown, string][] = [
    [domain.launchSecurity, 'encrypted guests (launchSecurity) are not supported'],
    [memory?.hugepages, 'huge pages are not supported; ordinary memory is used'],
    [cpu?.dedicatedCpuPlacement, 'dedicated processors are not supported; ordinary scheduling is used'],
    // maxGuest and maxSockets are set by admission on every VMI: `configureHotplug` makes room where there can be any.
    [cpu?.numa, 'NUMA layouts are not supported'],
    [cpu?.realtime, 'real-time processors are not supported'],
    [cpu?.isolateEmulatorThread, 'isolateEmulatorThread has no effect on this node'],
    [domain.ioThreads, 'a supplemental pool of I/O threads is not supported'],
    [devices.gpus?.length, 'GPUs of the host are not supported'],
    [devices.hostDevices?.length, 'devices of the host are not supported'],
    [devices.filesystems?.length, 'shared file systems (virtiofs) are not supported'],
    [devices.autoattachVSOCK, 'VSOCK is not supported'],
    [devices.clientPassthrough, 'USB redirection is not supported'],
    [devices.downwardMetrics, 'downward metrics are not supported'],
    [spec.volumes?.some((volume) => volume.downwardMetrics), 'downward metrics disks are not supported'],
    [spec.resourceClaims?.length, 'resource claims are not supported'],
  ];
  for (const [present, text] of asked) if (present) plan.unsupported.push(text);
}
