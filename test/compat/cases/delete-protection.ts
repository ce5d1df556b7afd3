import type { Group } from '../steps.ts';

const LABEL = 'policy.kruise.io/delete-protection';
const FORBIDDEN = `denied the request: forbidden by ResourcesProtectionDeletion for ${LABEL}=`;

const DEPLOYMENT = `apiVersion: apps/v1
kind: Deployment
metadata: {name: d, labels: {${LABEL}: Cascading}}
spec:
  replicas: 2
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}
`;

export const DELETE_PROTECTION: readonly Group[] = [
  {
    name: 'kruise label',
    steps: [
      { run: 'create ns {ns}-held', out: 'namespace/{ns}-held created' },
      { run: `label ns {ns}-held ${LABEL}=Always`, out: 'namespace/{ns}-held labeled' },
      {
        run: 'delete ns {ns}-held',
        err: `<lines>Error from server: admission webhook "vnamespace.kb.io" ${FORBIDDEN}Always`,
        code: 1,
      },
      { run: `label ns {ns}-held ${LABEL}=Cascading --overwrite`, out: 'namespace/{ns}-held labeled' },
      { run: 'delete ns {ns}-held --timeout=60s', out: 'namespace "{ns}-held" deleted', err: '<lines>' },
      {
        run: 'apply -f -',
        input: DEPLOYMENT,
        out: 'deployment.apps/d created',
        err: 'Warning: nothing acts on this Deployment yet<...>',
      },
      {
        run: 'delete deployment d --dry-run=server',
        err: `Error from server: admission webhook "vbuiltindeployment.kb.io" ${FORBIDDEN}Cascading and replicas 2>0`,
        code: 1,
      },
      { run: 'scale deployment d --replicas=0', out: 'deployment.apps/d scaled' },
      { run: 'delete deployment d', out: 'deployment.apps "d" deleted<from>' },
    ],
  },
];
