/** What is reported of a DataVolume when its status changes, in CDI's words. */
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { conditionOf } from '@coracle/apimachinery/meta/object-state';
import type { DataVolumeStatus } from '../../kinds/kinds.ts';
import type { DataVolumeOutcome, Work } from './data-volume-status.ts';

export interface DataVolumeEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

type Status = DeepReadonly<DataVolumeStatus> | undefined;

interface Change {
  readonly before: Status;
  readonly after: Status;
  readonly outcome: DataVolumeOutcome;
}

/** The events of one pass over the DataVolume of that name. */
export function dataVolumeEvents(name: string, { before, after, outcome }: Change): readonly DataVolumeEvent[] {
  if (outcome.type === 'failed')
    return [
      warning('Error', outcome.message),
      warning(
        `${outcome.work}Failed`,
        outcome.work === 'Upload'
          ? `Upload into ${name} failed`
          : `Failed to ${outcome.work.toLowerCase()} into PVC ${name}`,
      ),
    ];
  if (outcome.type !== 'waiting') return phaseEvents(name, { before, after, outcome });
  const reason = outcome.reason ?? 'Pending';
  return [
    ...(outcome.work === undefined ? [] : phaseEvents(name, { before, after, outcome })),
    ...(messageOf(before) === messageOf(after)
      ? []
      : [{ type: outcome.reason === undefined ? 'Normal' : 'Warning', reason, message: outcome.message } as const]),
  ];
}

function phaseEvents(name: string, { before, after, outcome }: Change): readonly DataVolumeEvent[] {
  const phase = after?.phase ?? '';
  if (phase === before?.phase) return [];
  const [, work, how = ''] = /^(Import|Clone|Upload)(Scheduled|InProgress|Ready)$/.exec(phase) ?? [];
  if (work !== undefined) return [normal(phase, `${work} into ${name} ${HOW[how]}`)];
  if (phase === 'PendingPopulation') return [normal(phase, `PVC ${name} Pending Population`)];
  if (phase !== 'Succeeded' || outcome.type !== 'bound') return [];
  const { work: done } = outcome;
  return [normal(`${done}Succeeded`, SUCCEEDED[done](name))];
}

const HOW: Readonly<Record<string, string>> = { Scheduled: 'scheduled', InProgress: 'in progress', Ready: 'ready' };
const SUCCEEDED: Readonly<Record<Work, (name: string) => string>> = {
  Import: (name) => `Successfully imported into PVC ${name}`,
  Clone: (name) => `Successfully cloned into PVC ${name}`,
  Upload: (name) => `Successfully uploaded into ${name}`,
};
const normal = (reason: string, message: string): DataVolumeEvent => ({ type: 'Normal', reason, message });
const warning = (reason: string, message: string): DataVolumeEvent => ({ type: 'Warning', reason, message });
const messageOf = (status: Status): string | undefined => conditionOf({ status }, 'Running')?.message;
