/** Writes on each DataSource whether what it leads to can be copied, as CDI does. */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { type DeepReadonly, type KubeObject, keyOf, keyText } from '@coracle/apimachinery/meta/object';
import { PERSISTENT_VOLUME_CLAIMS } from '@coracle/apimachinery/types/resource-types';
import { commit } from '@coracle/client/commit/commit';
import { type Controller, createController, ownKeys, source } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import type { Informer } from '@coracle/client/informer/informer';
import { VOLUME_SNAPSHOTS } from '@coracle/cluster-rules/volume-snapshot/kinds';
import { DATA_SOURCES, DATA_VOLUMES, type DataSource } from '../../kinds/kinds.ts';
import { dataSourceStatus, endOfDataSource } from '../../rules/data-volume/data-source-status.ts';

/** Makes the controller; nothing happens before `start`. */
export function createDataSourceController({ client, clock, log, informers }: ControllerEnvironment): Controller {
  const dataSources = informers.of(DATA_SOURCES);
  const dataVolumes = informers.of(DATA_VOLUMES);
  const claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
  const snapshots = informers.of(VOLUME_SNAPSHOTS);
  const targets = {
    dataSource: dataSources.get,
    dataVolume: dataVolumes.get,
    claim: claims.get,
    snapshot: snapshots.get,
  };
  /** The DataSources that lead to what has come, gone, or changed in what `stateOf` tells of it. */
  const leadingTo = <T extends KubeObject>(informer: Informer<T>, stateOf: (object: DeepReadonly<T>) => unknown) =>
    source(informer, (object, previous) => {
      const key = keyOf(object);
      if (previous && informer.get(key) && stateOf(object) === stateOf(previous)) return [];
      return dataSources
        .list()
        .filter((one) => {
          const end = endOfDataSource(one, targets.dataSource);
          return 'key' in end && keyText(end.key) === keyText(key);
        })
        .map(keyOf);
    });
  return createController({
    name: 'data-source',
    client,
    clock,
    log,
    sources: [
      ownKeys(dataSources),
      // Those that lead to others follow any of them.
      source(dataSources, () =>
        dataSources
          .list()
          .filter(({ spec }) => spec.source.dataSource)
          .map(keyOf),
      ),
      leadingTo(dataVolumes, ({ status }) => status?.phase),
      leadingTo(claims, () => true),
      leadingTo(snapshots, ({ status }) => status?.readyToUse),
    ],
    async reconcile(key, { signal }) {
      const before = dataSources.get(key);
      if (!before) return;
      const status = dataSourceStatus(before, targets, clock.now());
      if (!deepEqual(before.status, status))
        await commit(client, DATA_SOURCES, { before, after: { ...before, status } as DataSource, signal });
    },
  });
}
