/**
 * Where a launcher Pod may go, by labels of nodes: pure (pkg/virt-controller/services/nodeselectorrenderer.go,
 * template.go). What the instance asks for wins over the cluster's own labels; what its machine needs wins over both.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { Pod } from '@coracle/apimachinery/types/types';
import { TPM_LABEL } from '@coracle/cluster-rules/placement/node-labels';
import type { ReadonlyVmi, VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import { hasTpm } from '../backend-storage/backend-storage.ts';

type Affinity = NonNullable<Pod['spec']['affinity']>;
type Hyperv = NonNullable<NonNullable<VirtualMachineInstance['spec']['domain']['features']>['hyperv']>;

/** What the cluster says about nodes for guests. */
export interface NodeSelectorOptions {
  /** `developerConfiguration.nodeSelectors`. */
  readonly nodeSelectors?: Readonly<Record<string, string>>;
  /** The gate HypervStrictCheck: Hyper-V features count as needs. */
  readonly hypervStrictCheck?: boolean;
}

export const MACHINE_TYPE_PREFIX = 'machine-type.node.kubevirt.io/';
export const CPU_MODEL_PREFIX = 'cpu-model.node.kubevirt.io/';
export const CPU_FEATURE_PREFIX = 'cpu-feature.node.kubevirt.io/';
export const HYPERV_PREFIX = 'hyperv.node.kubevirt.io/';
const TSC_PREFIX = 'scheduling.node.kubevirt.io/tsc-frequency-';
const INTEL = 'cpu-vendor.node.kubevirt.io/Intel';

/** Hyper-V features that the node's kernel must know; the others are QEMU's own. */
export const HYPERV_OF_NODE = [
  'vpindex',
  'runtime',
  'reset',
  'synic',
  'synictimer',
  'frequencies',
  'reenlightenment',
  'tlbflush',
  'ipi',
] as const satisfies readonly (keyof Hyperv)[];

/** The Pod's `nodeSelector`. */
export function launcherNodeSelector(vmi: ReadonlyVmi, options: NodeSelectorOptions): Record<string, string> {
  const { spec, status } = vmi;
  const { cpu, features, machine, launchSecurity } = spec.domain ?? {};
  const selector: Record<string, string> = {
    'kubevirt.io/schedulable': 'true',
    ...(spec.architecture && { 'kubernetes.io/arch': spec.architecture.toLowerCase() }),
    ...options.nodeSelectors,
    ...spec.nodeSelector,
  };
  const need = (label: string): void => {
    selector[label] = 'true';
  };
  if (cpu?.dedicatedCpuPlacement) need('kubevirt.io/cpumanager');
  const hyperv = options.hypervStrictCheck ? features?.hyperv : undefined;
  if (hyperv) {
    for (const name of HYPERV_OF_NODE) if (hyperv[name]?.enabled) need(HYPERV_PREFIX + name);
    if (hyperv.evmcs && hyperv.evmcs.enabled !== false) need(INTEL);
  }
  if (cpu?.model) {
    if (cpu.model !== 'host-model' && cpu.model !== 'host-passthrough') need(CPU_MODEL_PREFIX + cpu.model);
    // Upstream looks at features only beside a model; admission gives every instance one.
    for (const { name, policy } of cpu.features ?? [])
      if (!policy || policy === 'require') need(CPU_FEATURE_PREFIX + name);
  }
  // What runs already is named exactly; `q35` would mean another version elsewhere.
  const machineType = status?.machine?.type || machine?.type;
  if (machineType) need(MACHINE_TYPE_PREFIX + machineType);
  const frequency = status?.topologyHints?.tscFrequency ?? 0;
  if (frequency > 0 && needsTscFrequency(spec)) need(TSC_PREFIX + frequency);
  if (hasTpm(spec)) need(TPM_LABEL);
  if (cpu?.realtime) need('kubevirt.io/realtime');
  if (launchSecurity?.sev) need('kubevirt.io/sev');
  if (launchSecurity?.sev?.policy?.encryptedState) need('kubevirt.io/sev-es');
  if (launchSecurity?.snp) need('kubevirt.io/sev-snp');
  if (launchSecurity && spec.architecture === 's390x') need('kubevirt.io/secure-execution');
  if (launchSecurity?.tdx) need('kubevirt.io/tdx');
  return selector;
}

/** Nodes that have the memory which a guest goes on from: those with this label. */
export interface MemoryPlace {
  readonly key: string;
  readonly value: string;
  /** False where the guest may boot instead. */
  readonly isRequired: boolean;
}

/** How much more than any other node one with the saved memory is wanted: the most that there is. */
const MEMORY_WEIGHT = 100;

/**
 * The Pod's `affinity`: the instance's, and in each of its node terms the processor features it forbids and where its
 * saved memory is.
 */
export function launcherAffinity(spec: ReadonlyVmi['spec'], memory?: MemoryPlace): Affinity | undefined {
  const affinity = withMemory(spec.affinity && (cloneJson(spec.affinity) as Affinity), memory);
  const forbidden = (spec.domain?.cpu?.features ?? [])
    .filter(({ policy }) => policy === 'forbid')
    .map(({ name }) => ({ key: CPU_FEATURE_PREFIX + name, operator: 'DoesNotExist' as const }));
  return forbidden.length === 0 ? affinity : withRequired(affinity, forbidden);
}

function withMemory(affinity: Affinity | undefined, memory: MemoryPlace | undefined): Affinity | undefined {
  if (!memory) return affinity;
  const expression = { key: memory.key, operator: 'In' as const, values: [memory.value] };
  if (memory.isRequired) return withRequired(affinity, [expression]);
  const wanted = { weight: MEMORY_WEIGHT, preference: { matchExpressions: [expression] } };
  const preferred = affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  return withNodes(affinity, { preferredDuringSchedulingIgnoredDuringExecution: [...preferred, wanted] });
}

type NodeAffinity = NonNullable<Affinity['nodeAffinity']>;
type Terms = NonNullable<NodeAffinity['requiredDuringSchedulingIgnoredDuringExecution']>['nodeSelectorTerms'];

const withNodes = (affinity: Affinity | undefined, more: NodeAffinity): Affinity => ({
  ...affinity,
  nodeAffinity: { ...affinity?.nodeAffinity, ...more },
});

function withRequired(
  affinity: Affinity | undefined,
  wanted: NonNullable<Terms[number]['matchExpressions']>,
): Affinity {
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  // Terms are alternatives: each one has to say it.
  const terms: Terms = required?.nodeSelectorTerms ?? [{}];
  const nodeSelectorTerms = terms.map((term) => ({
    ...term,
    matchExpressions: [...(term.matchExpressions ?? []), ...wanted],
  }));
  return withNodes(affinity, { requiredDuringSchedulingIgnoredDuringExecution: { ...required, nodeSelectorTerms } });
}

/** Guests that read the frequency once and rely on it (pkg/virt-controller/watch/topology). */
const needsTscFrequency = ({ domain }: ReadonlyVmi['spec']): boolean =>
  domain?.features?.hyperv?.reenlightenment?.enabled === true ||
  (domain?.cpu?.features ?? []).some(
    ({ name, policy }) => name === 'invtsc' && (policy === 'require' || policy === 'force'),
  );
