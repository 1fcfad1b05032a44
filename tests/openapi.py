"""docs/openapi.yaml as a judge of answers (jsonschema and PyYAML of Debian)."""
import json
import re

import jsonschema
import yaml

METHODS = ("get", "post", "put", "patch", "delete")


def norm(path):
    """/v1/gpus/{gpu} -> /v1/gpus/{}"""
    return re.sub(r"{\w+}", "{}", path)


class Spec:
    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            self.spec = yaml.safe_load(f)

    def operations(self):
        """{"GET /v1/gpus/{}", …}"""
        return {f"{m.upper()} {norm(p)}" for p, item in self.spec["paths"].items() for m in METHODS if m in item}

    def resolve(self, node):
        while isinstance(node, dict) and set(node) == {"$ref"}:
            at = self.spec
            for part in node["$ref"][2:].split("/"):
                at = at[part]
            node = at
        return node

    def validator(self, schema):
        # One document: the file's own components.
        return jsonschema.Draft202012Validator({**schema, "components": self.spec["components"]},
                                               format_checker=jsonschema.FormatChecker())

    def wrong(self, schema, value):
        """What is wrong with a value of components/schemas; None: nothing."""
        for e in self.validator({"$ref": f"#/components/schemas/{schema}"}).iter_errors(value):
            return f"{list(e.absolute_path)}: {e.message}"
        return None

    def find(self, method, target):
        """(path of the file, operation), or (None, None)."""
        path = target.split("?")[0]
        for pattern, item in self.spec["paths"].items():
            if re.fullmatch(re.sub(r"{\w+}", "[^/]+", pattern), path) and method.lower() in item:
                return norm(pattern), item[method.lower()]
        return None, None

    def judge(self, method, target, status, kind, body):
        """What is wrong with an answer; None: nothing."""
        op = self.find(method, target)[1]
        if op is None:
            return "no such operation in the file"
        answer = self.resolve(op["responses"].get(str(status)))
        if answer is None:
            return f"the file has no {status} there"
        content = answer.get("content")
        if content is None:
            return "a body where the file has none" if body else None
        if kind not in content:
            return f"{kind} is not among {list(content)}"
        if kind == "application/json":
            for e in self.validator(content[kind]["schema"]).iter_errors(json.loads(body)):
                return f"{list(e.absolute_path)}: {e.message}"
        return None

    def takes(self, method, target, body):
        """Does the file allow this request's body?"""
        op = self.find(method, target)[1]
        schema = op["requestBody"]["content"]["application/json"]["schema"]
        return not list(self.validator(schema).iter_errors(json.loads(body)))
