/** The KubeVirt CR as the controllers read it: defaults where it, or one of its fields, is absent. */
import { KUBEVIRTS } from '../../api/kinds/kubevirt/kubevirt.ts';
import type { InformerSet } from '../../client/informer/informer-set.ts';

export interface ClusterSettings {
  readonly cpuAllocationRatio: number;
  readonly useEmulation: boolean;
  readonly launcherImage: string;
}

/** Upstream's default: ten vCPUs share a core. */
const CPU_ALLOCATION_RATIO = 10;

/** Reads the settings anew at each call; the CR may change at any time. */
export function clusterSettings(informers: InformerSet): () => ClusterSettings {
  const kubevirts = informers.of(KUBEVIRTS);
  return () => {
    const spec = kubevirts.list()[0]?.spec;
    const developer = spec?.configuration?.developerConfiguration;
    return {
      cpuAllocationRatio: developer?.cpuAllocationRatio || CPU_ALLOCATION_RATIO,
      // Guests run emulated where the node cannot accelerate them, so a Pod asks for /dev/kvm only where told to insist.
      useEmulation: developer?.useEmulation ?? true,
      launcherImage: `${spec?.imageRegistry || 'coracle'}/virt-launcher:${spec?.imageTag || 'builtin'}`,
    };
  };
}
