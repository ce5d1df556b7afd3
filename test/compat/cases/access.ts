import type { Group } from '../steps.ts';

export const ACCESS: readonly Group[] = [
  {
    // S-026
    name: 'auth',
    steps: [
      {
        run: 'auth whoami',
        from: 28,
        out: 'ATTRIBUTE  VALUE\nUsername  kubernetes-admin\nGroups  [system:masters system:authenticated]\n<lines>',
      },
      { run: 'auth can-i create pods', full: true, out: 'yes' },
      { run: 'auth can-i create pods --as=jane', out: 'no', code: 1 },
      {
        run: 'get pods --as=jane',
        err: 'Error from server (Forbidden): pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "{ns}"',
        code: 1,
      },
      {
        run: 'auth whoami --as=jane --as-group=devs',
        from: 28,
        out: 'ATTRIBUTE  VALUE\nUsername  jane\nGroups  [devs system:authenticated]',
      },
      { run: 'create sa robot', out: 'serviceaccount/robot created' },
      { run: 'create role r --verb=get,list --resource=pods', out: 'role.rbac.authorization.k8s.io/r created' },
      {
        run: 'create rolebinding rb --role=r --serviceaccount={ns}:robot',
        out: 'rolebinding.rbac.authorization.k8s.io/rb created',
      },
      { run: 'auth can-i list pods --as=system:serviceaccount:{ns}:robot', out: 'yes' },
      { run: 'auth can-i delete pods --as=system:serviceaccount:{ns}:robot', full: true, out: 'no', code: 1 },
      {
        run: 'auth can-i --list --as=system:serviceaccount:{ns}:robot',
        out: 'Resources  Non-Resource URLs  Resource Names  Verbs\n<lines>pods  []  []  [get list]\n<lines>',
      },
      { run: 'get pods --as=system:serviceaccount:{ns}:robot', err: 'No resources found in {ns} namespace.' },
      {
        run: 'get cm --as=system:serviceaccount:{ns}:robot --as-group=devs',
        full: true,
        err: 'Error from server (Forbidden): configmaps is forbidden: User "system:serviceaccount:{ns}:robot" cannot list resource "configmaps" in API group "" in the namespace "{ns}"',
        code: 1,
      },
    ],
  },
];
