/** Where the content of a DataVolume comes from, of `spec.source` or `spec.sourceRef`. */
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { DataVolumeSpec } from '../../kinds/kinds.ts';
import type { Work } from './data-volume-status.ts';

type Spec = DeepReadonly<DataVolumeSpec>;
type Sources = NonNullable<Spec['source']>;

export type DataVolumeSource =
  | { readonly type: 'blank' | 'upload' }
  | { readonly type: 'http'; readonly http: NonNullable<Sources['http']> }
  | { readonly type: 'registry'; readonly registry: NonNullable<Sources['registry']> }
  | { readonly type: 'pvc' | 'snapshot' | 'dataSource'; readonly namespace: string; readonly name: string }
  /** Nothing here fetches from it. */
  | { readonly type: 'unserved'; readonly name: string };

/** Reads it; undefined where a claim fills itself (`dataSource` of the claim). `namespace` is that of the DataVolume. */
export function sourceOfDataVolume({ source, sourceRef }: Spec, namespace: string): DataVolumeSource | undefined {
  if (sourceRef) return { type: 'dataSource', namespace: sourceRef.namespace || namespace, name: sourceRef.name };
  if (!source) return undefined;
  const { blank, upload, http, registry, pvc, snapshot, ...more } = source;
  if (blank) return { type: 'blank' };
  if (upload) return { type: 'upload' };
  if (http) return { type: 'http', http };
  if (registry) return { type: 'registry', registry };
  if (pvc) return { type: 'pvc', namespace: pvc.namespace || namespace, name: pvc.name };
  if (snapshot) return { type: 'snapshot', namespace: snapshot.namespace || namespace, name: snapshot.name };
  const [name] = Object.entries(more).find(([, value]) => value !== undefined && value !== null) ?? [];
  return name === undefined ? undefined : { type: 'unserved', name };
}

/** What CDI calls the work, in phases and events. */
export function workOf(source: DataVolumeSource | undefined): Work {
  switch (source?.type) {
    case 'pvc':
    case 'snapshot':
    case 'dataSource':
      return 'Clone';
    case 'upload':
      return 'Upload';
    default:
      return 'Import';
  }
}
