/** What instance types and preferences are looked up with: through the API. */

import { isControlledBy } from '@coracle/apimachinery/meta/controller-reference';
import { CONTROLLER_REVISIONS } from '@coracle/apimachinery/types/resource-types';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import type { SourceReader } from '../../rules/instancetype/resolve.ts';
import { REVISION_LABELS } from '../../rules/instancetype/revision.ts';

/** Rejects with what the API answers, unless that is 404. */
export function sourceReader(client: Client): Required<SourceReader> {
  return {
    revision: (namespace, name) => orAbsent(client.get(CONTROLLER_REVISIONS, { namespace, name })),
    object: ({ type, namespace, name }) => orAbsent(client.get(type, { namespace, name })),
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
