/** The claim or VolumeSnapshot that a DataSource stands for. */
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { DATA_SOURCES, type DataSource } from '../kinds/kinds.ts';
import { MAX_REFERENCES } from '../rules/data-volume/data-source-status.ts';
import type { DataVolumeSource } from '../rules/data-volume/data-volume-source.ts';

/** Something that a DataVolume names is not there, or not as it must be. */
export class MissingPart extends Error {}

export type Named = { readonly type: 'pvc' | 'snapshot'; readonly namespace: string; readonly name: string };

/** Follows a DataSource to the claim or snapshot that it stands for. Throws MissingPart. */
export async function resolveDataSource(
  client: Client,
  source: Extract<DataVolumeSource, { type: 'pvc' | 'snapshot' | 'dataSource' }>,
): Promise<Named> {
  let at = source;
  for (let hop = 0; hop <= MAX_REFERENCES; hop++) {
    if (at.type !== 'dataSource') return at as Named;
    const found: DeepReadonly<DataSource> | undefined = await orAbsent(
      client.get(DATA_SOURCES, { namespace: at.namespace, name: at.name }),
    );
    if (!found) throw new MissingPart(`DataSource ${at.namespace}/${at.name} does not exist`);
    const { pvc, snapshot, dataSource } = found.spec.source;
    const next = pvc ?? snapshot ?? dataSource;
    if (!next) throw new MissingPart(`DataSource ${at.namespace}/${at.name} names no claim and no snapshot`);
    // Its own namespace is meant where it names none.
    const type = pvc ? 'pvc' : snapshot ? 'snapshot' : 'dataSource';
    at = { type, namespace: next.namespace || at.namespace, name: next.name };
  }
  throw new MissingPart(`DataSource ${source.namespace}/${source.name} leads to more than ${MAX_REFERENCES} others`);
}
