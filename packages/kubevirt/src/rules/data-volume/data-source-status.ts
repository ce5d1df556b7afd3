/** Status of a DataSource, of what it leads to: reasons and words are those of CDI's datasource-controller. */
import { type DeepReadonly, formatTime, type ObjectKey } from '@coracle/apimachinery/meta/object';
import { conditionOf } from '@coracle/apimachinery/meta/object-state';
import type { PersistentVolumeClaim } from '@coracle/apimachinery/types/types';
import type { VolumeSnapshot } from '@coracle/cluster-rules/volume-snapshot/kinds';
import type { CdiCondition, DataSource, DataVolume } from '../../kinds/kinds.ts';

/** DataSources that lead to one another are followed so far. */
export const MAX_REFERENCES = 3;

type Lookup<T> = (key: ObjectKey) => DeepReadonly<T> | undefined;

/** Where what a DataSource may lead to is looked up. */
export interface DataSourceTargets {
  readonly dataSource: Lookup<DataSource>;
  readonly dataVolume: Lookup<DataVolume>;
  readonly claim: Lookup<PersistentVolumeClaim>;
  readonly snapshot: Lookup<VolumeSnapshot>;
}

type Readiness = Pick<CdiCondition, 'status' | 'reason' | 'message'>;
type Source = DeepReadonly<DataSource['spec']['source']>;

/** The claim or snapshot at the end of the way, with the source that names it; or why there is none. */
export function endOfDataSource(
  start: DeepReadonly<DataSource>,
  lookup: Lookup<DataSource>,
): { readonly source: Source; readonly key: ObjectKey } | { readonly problem: Readiness } {
  let at = start;
  for (let hop = 0; hop <= MAX_REFERENCES; hop++) {
    const { source } = at.spec;
    const next = source.pvc ?? source.snapshot ?? source.dataSource;
    if (!next) return { problem: notReady('NoSource', 'No source PVC set') };
    const { namespace = '', name } = at.metadata;
    // Its own namespace is meant where it names none.
    const key = { namespace: next.namespace || namespace, name: next.name };
    if (source.pvc ?? source.snapshot) return { source, key };
    if (key.namespace === namespace && key.name === name)
      return { problem: notReady('SelfReference', `DataSource ${name} leads to itself`) };
    const found = lookup(key);
    if (!found) return { problem: notReady('NotFound', 'DataSource not found') };
    at = found;
  }
  return {
    problem: notReady('MaxReferenceDepthReached', `It leads to more than ${MAX_REFERENCES} other DataSources`),
  };
}

/** The status that follows. An unchanged condition keeps its times. */
export function dataSourceStatus(
  dataSource: DeepReadonly<DataSource>,
  targets: DataSourceTargets,
  now: number,
): DeepReadonly<DataSource['status']> {
  const end = endOfDataSource(dataSource, targets.dataSource);
  const ready = 'problem' in end ? end.problem : readinessOf(end.source, end.key, targets);
  const known = conditionOf(dataSource, 'Ready');
  const isSame = known?.status === ready.status && known.reason === ready.reason && known.message === ready.message;
  const time = formatTime(now);
  return {
    ...('source' in end && { source: end.source }),
    conditions: [
      {
        type: 'Ready',
        ...ready,
        lastTransitionTime: known?.status === ready.status ? (known.lastTransitionTime ?? time) : time,
        lastHeartbeatTime: isSame ? (known.lastHeartbeatTime ?? time) : time,
      },
    ],
  };
}

function readinessOf(source: Source, key: ObjectKey, { dataVolume, claim, snapshot }: DataSourceTargets): Readiness {
  if (!source.pvc) {
    const found = snapshot(key);
    if (!found) return notReady('NotFound', 'Snapshot not found');
    return found.status?.readyToUse === true ? READY : notReady('SnapshotNotReady', 'Snapshot phase is not ready');
  }
  const filled = dataVolume(key);
  if (!filled) return claim(key) ? READY : notReady('NotFound', 'PVC not found');
  const { phase = '' } = filled.status ?? {};
  return phase === 'Succeeded' ? READY : notReady(phase, `Import DataVolume phase ${phase}`);
}

const READY: Readiness = { status: 'True', reason: 'Ready', message: 'DataSource is ready to be consumed' };
const notReady = (reason: string, message: string): Readiness => ({ status: 'False', reason, message });
