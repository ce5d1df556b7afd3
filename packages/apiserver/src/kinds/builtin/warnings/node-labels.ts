/** Labels of nodes that have a newer name (pkg/api/node/util.go). */
import { objectsAt, textAt } from '@coracle/apimachinery/types/read-value';
import { warnEach } from './collect.ts';

const SINCE_14 = (name: string): string => `deprecated since v1.14; use "${name}" instead`;
const SINCE_17 = (name: string): string => `deprecated since v1.17; use "${name}" instead`;

const REPLACED: ReadonlyMap<string, string> = new Map([
  ['beta.kubernetes.io/arch', SINCE_14('kubernetes.io/arch')],
  ['beta.kubernetes.io/os', SINCE_14('kubernetes.io/os')],
  ['failure-domain.beta.kubernetes.io/region', SINCE_17('topology.kubernetes.io/region')],
  ['failure-domain.beta.kubernetes.io/zone', SINCE_17('topology.kubernetes.io/zone')],
  ['beta.kubernetes.io/instance-type', SINCE_17('node.kubernetes.io/instance-type')],
]);

/** What is wrong with naming this label; undefined when nothing is. */
export const replacedLabel = (key: string): string | undefined => REPLACED.get(key);

/** One warning for each old label that the expressions at `path` name. */
export const expressionWarnings = (found: string[], term: unknown, path: string): void =>
  warnEach(found, objectsAt(term, 'matchExpressions'), (expression, i) => {
    const key = textAt(expression, 'key');
    const why = replacedLabel(key);
    return why === undefined ? undefined : [`${path}.matchExpressions[${i}].key: ${key} is ${why}`];
  });
