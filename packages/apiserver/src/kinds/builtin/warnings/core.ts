/** What is valid and odd in Pods, Nodes and ServiceAccounts (WarningsOnCreate and WarningsOnUpdate of their strategies). */
import { checkLabelName } from '@coracle/apimachinery/meta/name-rules';
import { type JsonObject, objectAt, textAt, valueAt } from '@coracle/apimachinery/types/read-value';
import { podSpecWarnings } from './pod-spec.ts';

export function podWarnings(pod: JsonObject): string[] {
  const problems = checkLabelName(textAt(pod, 'metadata', 'name'));
  const first =
    problems.length === 0
      ? []
      : [
          `metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [${problems.join(' ')}]`,
        ];
  return [...first, ...podSpecWarnings(pod)];
}

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
