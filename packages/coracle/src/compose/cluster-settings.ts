/** The KubeVirt CR as the controllers read it: defaults where it, or one of its fields, is absent. */

import type { InformerSet } from '@coracle/client/informer/informer-set';
import { KUBEVIRTS } from '@coracle/kubevirt/kinds/kubevirt';
import { cpuAllocationRatioOf, launcherImageOf } from '@coracle/kubevirt/rules/machine-defaults/cluster-config';
import { isGateEnabled } from '@coracle/kubevirt/rules/machine-defaults/feature-gates';

export interface ClusterSettings {
  readonly cpuAllocationRatio: number;
  readonly useEmulation: boolean;
  readonly launcherImage: string;
  readonly serialConsoleLog: boolean;
  readonly nodeSelectors: Readonly<Record<string, string>>;
  readonly hypervStrictCheck: boolean;
  readonly functionalTestHooks: boolean;
}

/** Reads the settings anew at each call; the CR may change at any time. */
export function clusterSettings(informers: InformerSet): () => ClusterSettings {
  const kubevirts = informers.of(KUBEVIRTS);
  return () => {
    const spec = kubevirts.list()[0]?.spec;
    const developer = spec?.configuration?.developerConfiguration;
    const gates = { enabled: developer?.featureGates ?? [], disabled: developer?.disabledFeatureGates ?? [] };
    return {
      cpuAllocationRatio: cpuAllocationRatioOf(kubevirts.list()[0]),
      // Guests run emulated where the node cannot accelerate them, so a Pod asks for /dev/kvm only where the setting requires it.
      useEmulation: developer?.useEmulation ?? true,
      launcherImage: launcherImageOf(kubevirts.list()[0]),
      // An empty object there is what turns the log off.
      serialConsoleLog: spec?.configuration?.virtualMachineOptions?.disableSerialConsoleLog === undefined,
      nodeSelectors: developer?.nodeSelectors ?? {},
      hypervStrictCheck: isGateEnabled('HypervStrictCheck', gates),
      functionalTestHooks: isGateEnabled('FunctionalTestHooks', gates),
    };
  };
}
