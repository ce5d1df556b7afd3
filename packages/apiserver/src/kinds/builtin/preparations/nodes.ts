/** What nobody may set on a Node any more (node/strategy.go). */
import { type JsonObject, objectAt, valueAt } from '@coracle/apimachinery/types/read-value';

/** Kubelets have not been configured through the API since 1.24. */
export function dropConfiguration(node: Record<string, unknown>, old?: JsonObject): void {
  for (const [part, field] of [
    ['spec', 'configSource'],
    ['status', 'config'],
  ] as const) {
    if (valueAt(node, part, field) === undefined || valueAt(old, part, field) !== undefined) continue;
    const { [field]: _, ...kept } = objectAt(node, part);
    node[part] = kept;
  }
}
