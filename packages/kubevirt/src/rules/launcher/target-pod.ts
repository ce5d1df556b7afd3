/**
 * The launcher Pod a migration brings up elsewhere: the source's template, on the very images the source runs, never
 * beside another launcher of the same instance (pkg/virt-controller/watch/migration, createTargetPod).
 */

import type { Pod, ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { ReadonlyMigration, ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { TARGET_IMAGE_HOOK } from './functional-test-hooks.ts';
import { CREATED_BY_LABEL, MIGRATION_JOB_LABEL, MIGRATION_JOB_NAME_ANNOTATION } from './launcher-labels.ts';
import { type LauncherPodOptions, launcherPod } from './launcher-pod.ts';
import { namespaceLimitsOf } from './namespace-limits.ts';

type Labels = Readonly<Record<string, string>>;

export interface TargetPodInput {
  readonly vmi: ReadonlyVmi;
  readonly migration: ReadonlyMigration;
  readonly source: ReadonlyPod;
  readonly options: LauncherPodOptions;
  /** Labels of the node the guest runs on: what a guest with CPU model `host-model` needs elsewhere. */
  readonly sourceNodeLabels: Labels;
}

const HOST_MODEL_PREFIX = 'host-model-cpu.node.kubevirt.io/';
const HOST_MODEL_FEATURE_PREFIX = 'host-model-required-features.node.kubevirt.io/';
const HOST_MODEL_MIGRATION_PREFIX = 'cpu-model-migration.node.kubevirt.io/';
const FEATURE_PREFIX = 'cpu-feature.node.kubevirt.io/';
/** Containers that only bring an image: disks, and a kernel to boot. */
const READ_BY_GUEST = /^(volume.+|kernel-boot)$/;

/** Builds the Pod. */
export function targetPod({ vmi, migration, source, options, sourceNodeLabels }: TargetPodInput): Pod {
  const pod = launcherPod(vmi, { ...options, ...namespaceLimitsOf(source) });
  const spec = pod.spec;
  const { uid = '', name: job = '' } = migration.metadata;
  pod.metadata.labels = { ...pod.metadata.labels, [MIGRATION_JOB_LABEL]: uid };
  pod.metadata.annotations = { ...pod.metadata.annotations, [MIGRATION_JOB_NAME_ANNOTATION]: job };
  const imageIds = new Map((source.status?.containerStatuses ?? []).map(({ name, imageID }) => [name, imageID ?? '']));
  // The launcher itself may be of another version on the other side; what the guest reads may not.
  for (const container of [...spec.containers, ...(spec.initContainers ?? [])])
    if (READ_BY_GUEST.test(container.name))
      container.image = pinnedImage(container.image ?? '', imageIds.get(container.name) ?? '');
  const override = options.functionalTestHooks && migration.metadata.annotations?.[TARGET_IMAGE_HOOK];
  const compute = spec.containers.find(({ name }) => name === 'compute');
  if (override && compute) {
    compute.image = override;
    pod.metadata.annotations[TARGET_IMAGE_HOOK] = override;
  }
  // What the instance asks for wins: a migration may narrow the choice, not widen it.
  spec.nodeSelector = {
    ...migration.spec.addedNodeSelector,
    ...spec.nodeSelector,
    ...(vmi.spec.domain?.cpu?.model === 'host-model' && hostModelSelector(source, sourceNodeLabels)),
  };
  spec.affinity = apartFrom(vmi.metadata.uid ?? '', spec.affinity);
  return pod;
}

/** The affinity of a Pod that is never put beside another launcher of the instance with this uid. */
export function apartFrom(uid: string, affinity: Pod['spec']['affinity']): NonNullable<Pod['spec']['affinity']> {
  const term = { labelSelector: { matchLabels: { [CREATED_BY_LABEL]: uid } }, topologyKey: 'kubernetes.io/hostname' };
  const anti = affinity?.podAntiAffinity;
  const terms = [...(anti?.requiredDuringSchedulingIgnoredDuringExecution ?? []), term];
  return { ...affinity, podAntiAffinity: { ...anti, requiredDuringSchedulingIgnoredDuringExecution: terms } };
}

/** The image by the digest the source runs, so that a tag that moved meanwhile does no harm. */
export function pinnedImage(image: string, imageId: string): string {
  const digest = /sha256:[0-9a-f]+/.exec(imageId)?.[0];
  if (digest === undefined) return image;
  const at = image.indexOf('@');
  const base = at < 0 ? image : image.slice(0, at);
  const colon = base.lastIndexOf(':');
  return `${colon > base.lastIndexOf('/') ? base.slice(0, colon) : base}@${digest}`;
}

/** What a target Pod asks of its node for the sake of the host's CPU model, by key. */
export const hostModelLabels = (target: ReadonlyPod): (readonly [key: string, value: string])[] =>
  Object.entries(target.spec.nodeSelector ?? {})
    .filter(([key]) => key.startsWith(HOST_MODEL_MIGRATION_PREFIX) || key.startsWith(FEATURE_PREFIX))
    .sort(([a], [b]) => (a < b ? -1 : 1));

/** A guest that migrated before keeps what it asked for then: the labels of its present node may ask for more. */
function hostModelSelector(source: ReadonlyPod, nodeLabels: Labels): Labels {
  const kept = hostModelLabels(source);
  const selector: Record<string, string> = Object.fromEntries(kept);
  if (kept.some(([key]) => key.startsWith(HOST_MODEL_MIGRATION_PREFIX))) return selector;
  const model = Object.entries(nodeLabels).find(([key]) => key.startsWith(HOST_MODEL_PREFIX));
  // Nodes that do not tell their model (agents of ours on one host): the agents compare by themselves.
  if (!model) return selector;
  selector[HOST_MODEL_MIGRATION_PREFIX + model[0].slice(HOST_MODEL_PREFIX.length)] = model[1];
  for (const [key, value] of Object.entries(nodeLabels))
    if (key.startsWith(HOST_MODEL_FEATURE_PREFIX))
      selector[FEATURE_PREFIX + key.slice(HOST_MODEL_FEATURE_PREFIX.length)] = value;
  return selector;
}
