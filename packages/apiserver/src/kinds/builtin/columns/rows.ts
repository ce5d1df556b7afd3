/** What a Table says of rows beside their cells: which have come to an end, and in which order they stand. */

import { type JsonObject, numberAt, textAt } from '@coracle/apimachinery/types/read-value';
import type { TableRows } from '@coracle/apimachinery/types/resource';

const completed = (reason: string, message: string) => [{ type: 'Completed', status: 'True', reason, message }];

const ENDED: Readonly<Record<string, ReturnType<typeof completed>>> = {
  Succeeded: completed('Succeeded', 'The pod has completed successfully.'),
  Failed: completed('Failed', 'The pod failed.'),
};

/** As requests are matched: by precedence, then by name. */
function byPrecedence(a: JsonObject, b: JsonObject): number {
  const ahead = numberAt(a, 'spec', 'matchingPrecedence') - numberAt(b, 'spec', 'matchingPrecedence');
  if (ahead !== 0) return ahead;
  return textAt(a, 'metadata', 'name') < textAt(b, 'metadata', 'name') ? -1 : 1;
}

const BY_RESOURCE: Readonly<Record<string, TableRows>> = {
  '/pods': { conditions: (pod) => ENDED[textAt(pod, 'status', 'phase')] },
  'flowcontrol.apiserver.k8s.io/flowschemas': { compare: byPrecedence },
};

/** The rules of a kind's rows; none for nearly all. */
export const rowsOf = (group: string, resource: string): TableRows | undefined => BY_RESOURCE[`${group}/${resource}`];
