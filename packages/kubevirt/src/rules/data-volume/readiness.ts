/** What the DataVolumes of a machine mean for it: whether it may start, and the word for people meanwhile. */
import { conditionOf } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyDataVolume } from '../../kinds/kinds.ts';
import type { ReadonlyVm } from '../../kinds/kubevirt.ts';

/** Of instances, and of the machines that have them. */
export const DATA_VOLUMES_READY = 'DataVolumesReady';

/** `error`: an attempt to fill one failed. `provisioning`: one is being filled. `binding`: one waits for the first Pod. */
export type DiskState = 'error' | 'provisioning' | 'binding' | 'ready';

/** Phases in which a machine may start: where one waits for a Pod, that is the machine's. */
const STARTABLE = ['Succeeded', 'WaitForFirstConsumer', 'PendingPopulation'];
const FAILED_REASONS = ['Error', 'ImagePullFailed'];

/** True when a machine whose templates name it may start; one that is not there yet keeps it. */
export const allowsStart = (dataVolume: ReadonlyDataVolume | undefined): boolean =>
  STARTABLE.includes(dataVolume?.status?.phase ?? '');

/** The state of those that the volumes of a machine name and that are there. */
export function diskState(dataVolumes: readonly ReadonlyDataVolume[]): DiskState {
  if (dataVolumes.some(hasFailed)) return 'error';
  const phases = dataVolumes.map(({ status }) => status?.phase ?? '');
  if (phases.some((phase) => !STARTABLE.includes(phase))) return 'provisioning';
  return phases.every((phase) => phase === 'Succeeded') ? 'ready' : 'binding';
}

/**
 * Why a machine waits for the first of its DataVolumes that is not filled, in words; undefined when it waits for none. The
 * progress is left out: it would be a write of the machine for each step.
 */
export function diskProblem(dataVolumes: readonly ReadonlyDataVolume[]): string | undefined {
  const failed = dataVolumes.find(hasFailed);
  if (failed) {
    const running = conditionOf(failed, 'Running');
    return `DataVolume ${failed.metadata.name} failed: ${running?.message || running?.reason || 'it does not say why'}`;
  }
  const waits = dataVolumes.find((dataVolume) => !allowsStart(dataVolume));
  return (
    waits && `DataVolume ${waits.metadata.name} is not filled yet: it is in phase ${waits.status?.phase || 'Pending'}`
  );
}

function hasFailed(dataVolume: ReadonlyDataVolume): boolean {
  if (dataVolume.status?.phase === 'Failed') return true;
  const running = conditionOf(dataVolume, 'Running');
  return running?.status === 'False' && FAILED_REASONS.includes(running.reason ?? '');
}

/** Names of the DataVolumes that a machine has to do with: of its templates, and of its volumes. */
export const dataVolumeNames = ({ spec }: ReadonlyVm): readonly string[] => [
  ...new Set([
    ...(spec.dataVolumeTemplates ?? []).flatMap(({ metadata }) => metadata?.name ?? []),
    ...(spec.template.spec?.volumes ?? []).flatMap(({ dataVolume }) => dataVolume?.name ?? []),
  ]),
];
