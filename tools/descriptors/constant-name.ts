/** `NetworkPolicy`, `networkpolicies` -> `NETWORK_POLICIES`. */
export function constantOf(kind: string, plural: string): string {
  const words = kind
    .replace('KubeVirt', 'Kubevirt')
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .split(' ');
  words.pop();
  return [...words, plural.replaceAll('-', '').slice(words.join('').length)].join('_').toUpperCase();
}
