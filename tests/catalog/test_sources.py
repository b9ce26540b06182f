"""Each trap of each format, and what becomes of it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest


def _get(responses: Any = None, **more: Any) -> dict[str, Any]:
    return {"summary": "Fetch something that is useful", "responses": responses or {}, **more}


def _ok(schema: dict[str, Any]) -> dict[str, Any]:
    return {"200": {"content": {"application/json": {"schema": schema}}}}


def _body(schema: dict[str, Any], required: bool = True) -> dict[str, Any]:
    return {"required": required, "content": {"application/json": {"schema": schema}}}


class TestBotocore:
    def test_html_is_gone_and_member_texts_are_kept(self, build: Any) -> None:
        tool = build().tool("kettle_describe_kettles")
        assert tool["description"] == "Describes kettles of this account. Hot!"
        assert tool["parameters"]["properties"]["Room"]["description"] == "Where to look, for example kitchen."

    def test_limits_take_the_words_of_their_type(self, build: Any) -> None:
        properties = build().tool("kettle_describe_kettles")["parameters"]["properties"]
        assert properties["Room"] == properties["Room"] | {"minLength": 1, "maxLength": 20, "pattern": "[a-z]+"}
        assert properties["Max"] == {"type": "integer", "minimum": 1, "maximum": 100}

    def test_a_recursive_shape_ends_at_the_depth(self, build: Any) -> None:
        schema = build(max_depth=3).tool("kettle_describe_kettles")["parameters"]
        inner = schema["properties"]["Filter"]["properties"]["Not"]
        assert inner["properties"]["Not"] == {"type": "object"}

    def test_maps_lists_times_and_free_documents(self, build: Any) -> None:
        properties = build().tool("kettle_describe_kettles")["returns"]["properties"]
        assert properties["Tags"]["additionalProperties"] == {"type": "string", "minLength": 1, "maxLength": 20}
        kettle = properties["Kettles"]["items"]["properties"]
        assert kettle["Since"] == {"type": "string", "format": "date-time"}
        assert kettle["State"] == {"type": "string", "enum": ["cold", "hot"]}
        assert properties["Extra"] == {}

    def test_an_operation_without_output_has_no_returns(self, build: Any) -> None:
        tool = build().tool("kettle_boil_water")
        assert tool["returns"] is None
        assert tool["deprecated"]


class TestDiscovery:
    def test_bounds_written_as_strings_become_numbers(self, build: Any) -> None:
        properties = build().tool("teapot_pots_list")["parameters"]["properties"]
        assert properties["size"] == {"type": "integer", "format": "int32", "minimum": 1, "maximum": 50}

    def test_a_repeated_parameter_is_a_list(self, build: Any) -> None:
        color = build().tool("teapot_pots_list")["parameters"]["properties"]["color"]
        assert color == {"description": "Colours to show.", "type": "array", "items": {"type": "string"}}

    def test_the_resource_is_merged_into_the_arguments(self, build: Any) -> None:
        parameters = build().tool("teapot_pots_create")["parameters"]
        assert list(parameters["properties"]) == ["house", "name", "volume", "anything", "inner"]
        assert parameters["required"] == ["house", "name", "volume"]
        assert parameters["properties"]["volume"] == {"type": "number", "minimum": 0.5}

    def test_what_the_server_sets_is_read_only(self, build: Any) -> None:
        returns = build().tool("teapot_pots_create")["returns"]["properties"]
        assert {"uid", "brewed"} <= set(returns)
        assert returns["brewed"] == {"type": "string", "format": "date-time"}

    def test_any_says_nothing_about_the_type(self, build: Any) -> None:
        assert build().tool("teapot_pots_create")["returns"]["properties"]["anything"] == {}


class TestOpenapi:
    def test_a_pointer_into_paths_is_followed(self, build_document: Any) -> None:
        link = "#/paths/~1a~1%7Bid%7D/get/responses/200/content/application~1json/schema"
        schema = {"type": "object", "properties": {"id": {"type": "integer"}}}
        built = build_document(
            {
                "/a/{id}": {"get": _get(_ok(schema), operationId="getA")},
                "/b": {"get": _get(_ok({"$ref": link}), operationId="getB")},
            }
        )
        assert built.tool("cups_get_b")["returns"] == schema

    @pytest.mark.parametrize("link", ["#/nowhere/at/all", "other.yaml#/X", "#/components/schemas/Loop", 7])
    def test_a_reference_that_leads_nowhere_allows_anything(self, build_document: Any, link: Any) -> None:
        schema = {"type": "object", "properties": {"x": {"$ref": link}}}
        loop = {"schemas": {"Loop": {"$ref": "#/components/schemas/Loop"}}}
        built = build_document({"/a": {"get": _get(_ok(schema), operationId="getA")}}, components=loop)
        assert built.tool("cups_get_a")["returns"]["properties"] == {"x": {}}

    def test_an_operation_without_id_is_named_by_method_and_path(self, build_document: Any) -> None:
        tool = build_document({"/v1/cups/{cup}/handles": {"get": _get()}}).tool("cups_get_cups_cup_handles")
        assert tool["source_name"] == "GET /v1/cups/{cup}/handles"

    def test_the_parameter_of_the_operation_counts_over_that_of_the_path(self, build_document: Any) -> None:
        shared = [{"name": "id", "in": "path", "schema": {"type": "string"}}]
        own = [{"name": "id", "in": "path", "schema": {"type": "integer"}}]
        built = build_document({"/a/{id}": {"parameters": shared, "get": _get(operationId="getA", parameters=own)}})
        assert built.tool("cups_get_a")["parameters"] == {
            "type": "object",
            "properties": {"id": {"type": "integer"}},
            "required": ["id"],
        }

    def test_credentials_and_plumbing_are_no_parameters(self, build_document: Any) -> None:
        names = [("Authorization", "header"), ("X-API-Key", "header"), ("Accept", "header"), ("sid", "cookie")]
        names += [("x-acme-client-authentication", "header"), ("X-Acme-Server-Token", "header"), ("Secret", "header")]
        names += [("X-Trace", "header"), ("X-Next-Token", "header")]
        names += [("api_key", "query"), ("accessToken", "query"), ("signed", "query"), ("key", "query")]
        parameters = [{"name": name, "in": place, "schema": {"type": "string"}} for name, place in names]
        parameters.append(
            {"name": "token", "in": "query", "description": "Access token.", "schema": {"type": "string"}}
        )
        schemes = {"securitySchemes": {"k": {"type": "apiKey", "in": "query", "name": "signed"}}}
        built = build_document({"/a": {"get": _get(operationId="getA", parameters=parameters)}}, components=schemes)
        assert set(built.tool("cups_get_a")["parameters"]["properties"]) == {"key", "X-Trace", "X-Next-Token"}

    def test_the_body_is_merged_and_the_path_keeps_its_name(self, build_document: Any) -> None:
        schema = {
            "type": "object",
            "required": ["size", "id"],
            "properties": {
                "id": {"type": "integer"},
                "size": {"type": "number"},
                "made": {"type": "string", "readOnly": True},
                "pin": {"type": "string", "writeOnly": True},
            },
        }
        path = [{"name": "id", "in": "path", "schema": {"type": "string"}}]
        operation = _get(_ok(schema), operationId="putA", parameters=path, requestBody=_body(schema))
        tool = build_document({"/a/{id}": {"put": operation}}).tool("cups_put_a")
        assert list(tool["parameters"]["properties"]) == ["id", "size", "pin"]
        assert tool["parameters"]["properties"]["id"] == {"type": "string"}
        assert tool["parameters"]["required"] == ["id", "size"]
        assert list(tool["returns"]["properties"]) == ["id", "size", "made"]

    def test_a_body_that_is_no_object_is_one_parameter(self, build_document: Any) -> None:
        schema = {"type": "array", "items": {"type": "string"}, "description": "Names to add."}
        built = build_document({"/a": {"post": _get(operationId="addA", requestBody=_body(schema))}})
        assert built.tool("cups_add_a")["parameters"] == {
            "type": "object",
            "properties": {"body": {"description": "Names to add.", "type": "array", "items": {"type": "string"}}},
            "required": ["body"],
        }

    def test_all_of_is_merged_and_objects_to_choose_from_are_joined(self, build_document: Any) -> None:
        one = {
            "type": "object",
            "required": ["kind", "a"],
            "properties": {"kind": {"type": "string"}, "a": {"type": "integer"}},
        }
        two = {
            "type": "object",
            "required": ["kind"],
            "properties": {"kind": {"type": "string"}, "b": {"type": "boolean"}},
        }
        base = {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}
        schema = {"allOf": [{"$ref": "#/components/schemas/Base"}, {"oneOf": [one, two]}]}
        built = build_document(
            {"/a": {"get": _get(_ok(schema), operationId="getA")}}, components={"schemas": {"Base": base}}
        )
        returns = built.tool("cups_get_a")["returns"]
        assert list(returns["properties"]) == ["id", "kind", "a", "b"]
        assert returns["required"] == ["id", "kind"]

    def test_other_alternatives_stay_side_by_side_without_null(self, build_document: Any) -> None:
        options = {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}
        nullable = {"oneOf": [{"type": "string", "format": "date"}, {"type": "null"}]}
        schema = {"type": "object", "properties": {"x": options, "y": nullable, "z": {"type": ["null", "integer"]}}}
        built = build_document({"/a": {"get": _get(_ok(schema), operationId="getA")}}, components={})
        assert built.tool("cups_get_a")["returns"]["properties"] == {
            "x": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "y": {"type": "string", "format": "date"},
            "z": {"type": "integer"},
        }

    def test_an_alternative_that_is_its_own_parent_ends(self, build_document: Any) -> None:
        me = {
            "oneOf": [
                {"$ref": "#/components/schemas/Me"},
                {"type": "string"},
                {"type": "array", "items": {"$ref": "#/components/schemas/Me"}},
            ]
        }
        schema = {"type": "object", "properties": {"me": {"$ref": "#/components/schemas/Me"}}}
        built = build_document(
            {"/a": {"get": _get(_ok(schema), operationId="getA")}}, components={"schemas": {"Me": me}}
        )
        assert "me" in built.tool("cups_get_a")["returns"]["properties"]

    @pytest.mark.parametrize(
        ("schema", "repaired"),
        [
            ({"type": "string", "pattern": 7}, {"type": "string"}),
            ({"type": "string", "pattern": "("}, {"type": "string"}),
            ({"type": "string", "pattern": "^a+$"}, {"type": "string", "pattern": "^a+$"}),
            ({"type": "integer", "minimum": 5, "maximum": 1}, {"type": "integer"}),
            ({"type": "number", "minimum": 0, "exclusiveMinimum": True}, {"type": "number", "exclusiveMinimum": 0}),
            ({"type": "number", "exclusiveMaximum": 9}, {"type": "number", "exclusiveMaximum": 9}),
            ({"type": "string", "enum": ["a", "a", None, True]}, {"type": "string", "enum": ["a", "true"]}),
            ({"type": "integer", "enum": ["1", 2, "x"]}, {"type": "integer", "enum": [1, 2]}),
            ({"enum": ["a"]}, {"type": "string", "enum": ["a"]}),
            ({"const": "a", "type": "string"}, {"type": "string", "enum": ["a"]}),
            ({"type": "integer", "default": "3"}, {"type": "integer", "default": 3}),
            ({"type": "integer", "default": "three"}, {"type": "integer"}),
            ({"type": "string", "example": 5}, {"type": "string", "examples": ["5"]}),
            ({"type": "String"}, {"type": "string"}),
            ({"type": "banana"}, {}),
            ({"properties": {"a": True}, "required": True}, {"type": "object", "properties": {"a": {}}}),
            ({"type": "array", "items": [{"type": "string"}]}, {"type": "array"}),
            (
                {"type": "object", "required": ["a", "a", "z"], "properties": {"a": {}}},
                {"type": "object", "properties": {"a": {}}, "required": ["a"]},
            ),
            ({"type": "string", "minLength": -1, "maxLength": "8"}, {"type": "string", "maxLength": 8}),
        ],
    )
    def test_a_broken_schema_is_repaired(self, build_document: Any, schema: Any, repaired: Any) -> None:
        parameters = [{"name": "x", "in": "query", "schema": schema}]
        built = build_document({"/a": {"get": _get(operationId="getA", parameters=parameters)}})
        assert built.tool("cups_get_a")["parameters"]["properties"]["x"] == repaired

    def test_results_carry_no_pattern_and_no_default(self, build_document: Any) -> None:
        schema = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^a$", "default": "a"}}}
        built = build_document({"/a": {"get": _get(_ok(schema), operationId="getA")}})
        assert built.tool("cups_get_a")["returns"]["properties"]["x"] == {"type": "string"}

    def test_a_schema_that_is_too_long_loses_its_deepest_level_first(self, build_document: Any) -> None:
        deep = {"type": "object", "properties": {f"leaf{i}": {"type": "string"} for i in range(40)}}
        schema = {
            "type": "object",
            "properties": {"top": {"type": "string"}, "mid": {"type": "object", "properties": {"deep": deep}}},
        }
        built = build_document({"/a": {"get": _get(_ok(schema), operationId="getA")}}, config={"max_schema_chars": 400})
        assert built.tool("cups_get_a")["returns"]["properties"] == {
            "top": {"type": "string"},
            "mid": {"type": "object", "properties": {"deep": {"type": "object"}}},
        }

    def test_a_schema_that_is_too_wide_keeps_what_is_required(self, build_document: Any) -> None:
        parameters = [
            {"name": f"p{i}", "in": "query", "schema": {"type": "string"}, "required": i > 95} for i in range(100)
        ]
        built = build_document(
            {"/a": {"get": _get(operationId="getA", parameters=parameters)}}, config={"max_schema_chars": 1_000}
        )
        tool = built.tool("cups_get_a")
        assert len(orjson.dumps(tool["parameters"])) <= 1_000
        assert tool["parameters"]["required"] == ["p96", "p97", "p98", "p99"]
        assert tool["n_parameters"] == len(tool["parameters"]["properties"]) > 4
        assert len(built.rows("SELECT * FROM parameters")) == tool["n_parameters"]

    def test_the_first_successful_response_with_a_schema_counts(self, build_document: Any) -> None:
        responses = {
            "204": {"description": "none"},
            "201": _ok({"type": "array", "items": {"type": "integer"}})["200"],
            "404": _ok({})["200"],
        }
        built = build_document({"/a": {"get": _get(responses, operationId="getA")}})
        assert built.tool("cups_get_a")["returns"] == {"type": "array", "items": {"type": "integer"}}

    def test_a_bare_object_is_no_known_result(self, build_document: Any) -> None:
        built = build_document({"/a": {"get": _get(_ok({"type": "object"}), operationId="getA")}})
        assert built.tool("cups_get_a")["returns"] is None

    def test_an_operation_without_any_text_is_described_by_its_name(self, build_document: Any) -> None:
        parameters = [{"name": "x", "in": "query", "schema": {"type": "string"}}]
        tool = build_document({"/a": {"get": {"operationId": "listOldCups", "parameters": parameters}}}).tool(
            "cups_list_old_cups"
        )
        assert tool["description"] == "List old cups"

    def test_a_malformed_operation_hides_none_of_its_siblings(self, build_document: Any) -> None:
        built = build_document(
            {
                "/a": {"get": _get(7, operationId="getA"), "put": "what"},
                "/b": {"get": _get(operationId="getB")},
                "/c": 3,
            }
        )
        assert built.tool("cups_get_b")
