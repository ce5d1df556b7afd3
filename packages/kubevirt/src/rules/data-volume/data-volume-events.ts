/** What is reported of a DataVolume when its status changes, in CDI's words. */
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { DataVolumeStatus } from '../../kinds/cdi/kinds.ts';
import type { DataVolumeOutcome } from './data-volume-status.ts';

export interface DataVolumeEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

type Status = DeepReadonly<DataVolumeStatus> | undefined;

/** The events of one pass over the DataVolume of that name. */
export function dataVolumeEvents(
  name: string,
  { before, after, outcome }: { readonly before: Status; readonly after: Status; readonly outcome: DataVolumeOutcome },
): readonly DataVolumeEvent[] {
  if (outcome.type === 'failed')
    return [
      warning('Error', outcome.message),
      warning(`${outcome.work}Failed`, `Failed to ${outcome.work.toLowerCase()} into PVC ${name}`),
    ];
  if (outcome.type === 'waiting') {
    if (messageOf(before) === messageOf(after)) return [];
    const reason = outcome.reason ?? 'Pending';
    return [{ type: outcome.reason === undefined ? 'Normal' : 'Warning', reason, message: outcome.message }];
  }
  const phase = after?.phase ?? '';
  if (phase === before?.phase) return [];
  const [, work, how] = /^(Import|Clone)(Scheduled|InProgress)$/.exec(phase) ?? [];
  if (work !== undefined)
    return [normal(phase, `${work} into ${name} ${how === 'Scheduled' ? 'scheduled' : 'in progress'}`)];
  if (phase === 'PendingPopulation') return [normal(phase, `PVC ${name} Pending Population`)];
  if (phase !== 'Succeeded' || outcome.type !== 'bound') return [];
  const done = outcome.work === 'Import' ? 'imported' : 'cloned';
  return [normal(`${outcome.work}Succeeded`, `Successfully ${done} into PVC ${name}`)];
}

const normal = (reason: string, message: string): DataVolumeEvent => ({ type: 'Normal', reason, message });
const warning = (reason: string, message: string): DataVolumeEvent => ({ type: 'Warning', reason, message });
const messageOf = (status: Status): string | undefined =>
  status?.conditions?.find(({ type }) => type === 'Running')?.message;
