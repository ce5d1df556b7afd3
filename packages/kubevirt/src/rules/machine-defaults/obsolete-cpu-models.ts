/** Processor models that no node offers: too old for a guest of today (KubeVirt `obsoleteCPUModels`). */

import type { ReadonlyKubeVirt } from '../../kinds/kubevirt.ts';

/** Upstream's defaults (pkg/virt-config DefaultObsoleteCPUModels). */
const DEFAULTS = [
  '486',
  'pentium',
  'pentium2',
  'pentium3',
  'pentiumpro',
  'coreduo',
  'n270',
  'core2duo',
  'Conroe',
  'athlon',
  'phenom',
  'qemu32',
  'qemu64',
  'kvm32',
  'kvm64',
  'Opteron_G1',
  'Opteron_G2',
];

/** Names of the models: the defaults, with what the KubeVirt object adds (true) or takes out (false). */
export function obsoleteCpuModels(kubevirt: ReadonlyKubeVirt | undefined): ReadonlySet<string> {
  const models = new Set(DEFAULTS);
  for (const [model, isObsolete] of Object.entries(kubevirt?.spec?.configuration?.obsoleteCPUModels ?? {}))
    if (isObsolete) models.add(model);
    else models.delete(model);
  return models;
}
