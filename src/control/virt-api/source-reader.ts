/** What instance types and preferences are looked up with: through the API. */
import { CONTROLLER_REVISIONS } from '../../api/kinds/builtin/resource-types.ts';
import type { DeepReadonly, KubeObject } from '../../api/meta/object.ts';
import { ApiError } from '../../api/meta/status.ts';
import type { Client } from '../../client/client.ts';
import type { SourceReader } from '../../domain/instancetype/resolve.ts';
import { REVISION_LABELS } from '../../domain/instancetype/revision.ts';

/** Rejects with what the API answers, unless that is 404. */
export function sourceReader(client: Client): SourceReader {
  return {
    revision: (namespace, name) => orMissing(client.get(CONTROLLER_REVISIONS, { namespace, name })),
    object: ({ type, namespace, name }) => orMissing(client.get(type, { namespace, name })),
    async own({ metadata }) {
      const { namespace = '', uid } = metadata;
      const { items } = await client.list(CONTROLLER_REVISIONS, {
        namespace,
        labelSelector: REVISION_LABELS.uid,
      });
      return items.filter((revision) => isControlledBy(revision, uid ?? ''));
    },
  };
}

const isControlledBy = ({ metadata }: DeepReadonly<KubeObject>, uid: string): boolean =>
  (metadata.ownerReferences ?? []).some((owner) => owner.controller === true && owner.uid === uid);

/** The result, or undefined for a 404. */
export async function orMissing<T>(pending: Promise<T>): Promise<T | undefined> {
  try {
    return await pending;
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return undefined;
    throw error;
  }
}
