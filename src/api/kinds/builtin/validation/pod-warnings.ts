/** What is valid in a Pod and still likely to be a mistake (pkg/api/pod/warnings.go). */
import { checkLabelName } from '../../../meta/name-rules.ts';
import { type JsonObject, numberAt, objectsAt, textAt } from '../read-value.ts';

/** The warnings a Pod's creator gets. */
export function podWarnings(pod: JsonObject): string[] {
  const problems = checkLabelName(textAt(pod, 'metadata', 'name'));
  return [
    ...(problems.length > 0
      ? [
          `metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [${problems.join(' ')}]`,
        ]
      : []),
    ...['initContainers', 'containers'].flatMap((list) =>
      objectsAt(pod, 'spec', list).flatMap((container, i) => containerWarnings(container, `spec.${list}[${i}]`)),
    ),
  ];
}

function containerWarnings(container: JsonObject, path: string): string[] {
  const warnings: string[] = [];
  const variables = new Set<string>();
  objectsAt(container, 'env').forEach((variable, i) => {
    const name = textAt(variable, 'name');
    if (variables.has(name)) {
      warnings.push(
        `${path}.env[${i}]: hides previous definition of ${JSON.stringify(name)}, which may be dropped when using apply`,
      );
    }
    variables.add(name);
  });
  const ports = new Map<string, number>();
  objectsAt(container, 'ports').forEach((port, i) => {
    const key = `${textAt(port, 'protocol')} ${numberAt(port, 'containerPort')} ${numberAt(port, 'hostPort')}`;
    const first = ports.get(key);
    if (first === undefined) ports.set(key, i);
    else warnings.push(`${path}.ports[${i}]: duplicate port definition with ${path}.ports[${first}]`);
  });
  return warnings;
}
