/** The KubeVirt CR as the controllers read it: defaults where it, or one of its fields, is absent. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { InformerSet } from '@coracle/client/informer/informer-set';
import { KUBEVIRTS, type KubeVirt } from '@coracle/kubevirt/kinds/kubevirt';
import type { LauncherPodOptions } from '@coracle/kubevirt/rules/launcher/launcher-pod';
import { launcherImageOf, podSizingOf } from '@coracle/kubevirt/rules/machine-defaults/cluster-config';
import { isGateEnabled } from '@coracle/kubevirt/rules/machine-defaults/feature-gates';

/** Reads the settings anew at each call; the CR may change at any time. */
export function clusterSettings(informers: InformerSet) {
  const kubevirts = informers.of(KUBEVIRTS);
  return () => {
    const spec = kubevirts.list()[0]?.spec;
    const developer = spec?.configuration?.developerConfiguration;
    const gates = { enabled: developer?.featureGates ?? [], disabled: developer?.disabledFeatureGates ?? [] };
    return {
      ...podSizingOf(kubevirts.list()[0]),
      // Guests run emulated where the node cannot accelerate them, so a Pod asks for /dev/kvm only where the setting requires it.
      useEmulation: developer?.useEmulation ?? true,
      launcherImage: launcherImageOf(kubevirts.list()[0]),
      // An empty object there is what turns the log off.
      serialConsoleLog: spec?.configuration?.virtualMachineOptions?.disableSerialConsoleLog === undefined,
      nodeSelectors: developer?.nodeSelectors ?? {},
      hypervStrictCheck: isGateEnabled('HypervStrictCheck', gates),
      functionalTestHooks: isGateEnabled('FunctionalTestHooks', gates),
      runtimeClass: spec?.configuration?.defaultRuntimeClass,
      seccompProfile: seccompProfileOf(spec?.configuration?.seccompConfiguration?.virtualMachineInstanceProfile),
    };
  };
}

type Seccomp = NonNullable<NonNullable<KubeVirt['spec']['configuration']>['seccompConfiguration']>;

/** The profile that the cluster names for launchers, as a Pod names it. */
function seccompProfileOf(
  profile: DeepReadonly<Seccomp>['virtualMachineInstanceProfile'],
): LauncherPodOptions['seccompProfile'] {
  const { localhostProfile, runtimeDefaultProfile } = profile?.customProfile ?? {};
  if (localhostProfile !== undefined) return { type: 'Localhost', localhostProfile };
  return runtimeDefaultProfile ? { type: 'RuntimeDefault' } : undefined;
}
