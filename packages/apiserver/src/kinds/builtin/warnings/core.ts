/** What is valid and odd in Nodes and ServiceAccounts (WarningsOnCreate and WarningsOnUpdate of their strategies). */
import { type JsonObject, objectAt, textAt, valueAt } from '@coracle/apimachinery/types/read-value';

export const nodeWarnings = (node: JsonObject): string[] => [
  ...(valueAt(node, 'spec', 'configSource') == null ? [] : ['spec.configSource: the feature is removed']),
  ...(textAt(node, 'spec', 'externalID') === ''
    ? []
    : ['spec.externalID: this field is deprecated, and is unused by Kubernetes']),
];

const ENFORCED = 'kubernetes.io/enforce-mountable-secrets';

/** Of what `old` does not say already. */
export function accountWarnings(account: JsonObject, old?: JsonObject): string[] {
  const isEnforced = (one: JsonObject | undefined): boolean =>
    Object.hasOwn(objectAt(one, 'metadata', 'annotations'), ENFORCED);
  return isEnforced(account) && !isEnforced(old)
    ? [
        `metadata.annotations[${ENFORCED}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets`,
      ]
    : [];
}
