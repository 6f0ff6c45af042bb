#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What jinja2 makes of small templates, in the sandbox that transformers uses for chat templates.

usage: jinja.py OUT     (OUT: tests/data/template/jinja.jsonl)

Writes a line per template: {"source", "variables", "output"}, or "error": true if jinja2 refuses it. Needs jinja2.
"""
import json
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class Generation(jinja2.ext.Extension):
    """{% generation %}: its text, as transformers shows it."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("show"), [], [], body).set_lineno(line)

    def show(self, caller):
        return caller()


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    return env


VARIABLES = {
    "text": "Hello wörld", "n": 3, "f": 2.5, "yes": True, "no": False, "nil": None, "list": [1, 2, 3], "words": ["b", "A", "c"],
    "map": {"b": 1, "a": [True, None, "x'y"], "c": {"d": "e"}},
    "people": [{"name": "Ann", "age": 3, "at": {"city": "Bern"}}, {"name": "Bob", "age": 2}, {"name": "Cy", "age": 3}],
}

TEMPLATES = r"""
{% for i in [1,2,3] %}{{ x }}{% set x = i %}{% endfor %}|{{x}}
{% set x=9 %}{% for i in [1,2,3] %}{{ x }}{% set x = i %}{% endfor %}|{{x}}
{% for i in [1,2,3] %}{% if i==2 %}{% set y=i %}{% endif %}{{y}},{% endfor %}
{% macro f(a,b=a) %}{{a}}{{b}}{{x}}{% endmacro %}{% set x=3 %}{{f(1)}}{{f(1,2)}}{{f()}}
{% macro f(a) %}{{a}}{{varargs}}{{kwargs}}{% endmacro %}{{f(1,2,z=3)}}
{{ {'a':1}.items() }} {{ range(3) }} {{ namespace(a=1) }} {{ f }}
{{ x.y }}
{{ x.y.z }}
{{ none.y }}
{{ none.y.z }}
{{ 'a' + 1 }}
{{ 'a' ~ 1 ~ none ~ x}}
{{ x + 'a' }}
{{ {}|length }}{{ x|length }}
{{ 'x' in x }}{{ x in [1] }}
{{ x in 'abc' }}
{{ 1 in none}}
{{ x == y }}{{ x == none }}{{x is none}}
{{ 'abc'[5] }}|{{ 'abc'[-1] }}|{{[1][4]}}
{{ x|tojson }}
{{ x|default('d') }}{{ ''|default('d') }}{{ ''|default('d',true) }}
{{ 7//2 }} {{ -7//2 }} {{ -7%3 }} {{ 7/2 }} {{ 2**3 }} {{2**-1}} {{1e20}} {{1.0}} {{ 1e16 }} {{ 0.00001 }}
{{ {'a':1,'b':[true,none,'x\'y','"\'\n\u00e9\u200b']} }}
{{ 1 if false }}|
{{ (1,) }} {{ () }} {{(1,2)}} {{ 1,2 }}
{{ -1|abs }} {{ 'a'|upper|lower }}
{{ not true == false }}
{{ 1 < 2 < 3 }} {{ 3 > 2 > 2}}
{{ a is defined and b is not defined }}
{{ 5 is divisibleby 5 }} {{ 'x' is in ['x'] }} {{ 3 is odd}}
{{ [1].append(2) }}
{{ [].append }}|
{{ 'a'.foo }}|{{ 'a'.foo is defined }}
{% for a,b in {'x':1}.items() %}{{a}}{{b}}{{loop.index}}{{loop.first}}{{loop.last}}{{loop.length}}{% endfor %}
{% for a in [] %}x{% else %}e{% endfor %}
{% for a in [1,2,3] if a > 1 %}{{a}}{{loop.index}}{{loop.previtem}}{{loop.nextitem}}{% endfor %}
{{ 'a b  c'.split() }} {{'a,b'.split(',',1)}}
{{ '%s-%d' % ('a', 3) }} {{ '{} {x}'.format(1,x=2)}}
{{ 'x'|join('a') }} {{ [1,2]|join('-') }} {{ [{'a':1}]|join(',',attribute='a')}}
{{ true + 1 }} {{ 1 == true }} {{ 1.0 == 1}}
{{ 'abc'|first }}{{ 'abc'|last }}{{ []|first }}|
{{ {'b':1,'a':2}|dictsort }}
{{ {'b':1,'a':2}|list }}
{{ 'a' * 3 }} {{ [1]*2 }} {{ [1]+[2]}}
{{ [3,1]|sort }} {{ ['b','A']|sort }} {{ [1,1,2]|unique|list }}
{{ 'hello world'|title }} {{ "it's".title() }} {{ 'hELLO'|capitalize }}
{{ loop }}
{% for i in [1] %}{% for j in [1] %}{{ loop.depth }}{% endfor %}{% endfor %}
{{ 'a\qb\x41' }}
{{ messages[0]['content'] }}
{{ 1 + }}
{% foo %}
{{ 'a'|nofilter }}
{% if %}
{% for %}{% endfor %}
{{ 'abc' }
{% set ns = namespace(x=1) %}{% set ns.x = 2 %}{{ ns.x }}{{ns.y}}|
{% set y.x = 2 %}
{% set d = {} %}{% set d.x = 2 %}
{% set a, b = 1, 2 %}{{a}}{{b}}
{% set x %}abc{% endset %}{{x|length}}
{% filter upper %}abc{% endfilter %}
{% with a=1 %}{{a}}{% endwith %}{{a}}
{{ [1,2,3][1:] }} {{ 'abc'[::-1] }} {{ [1,2,3][:-1] }} {{ (1,2,3)[::2] }}
{{ x.a is defined }}
{{ x.a.b is defined }}
{{ 3|string + 'a' }}
{{ '5'|int + 1 }} {{ 'x'|int }} {{ 3.7|int }} {{ '3.7'|int}}
{{ 3.5|round }} {{ 2.5|round }} {{ 2.567|round(2) }} {{ 7|round }}
{{ 'a'|indent(2) }} {{ 'a\nb\n\nc'|indent(2) }} {{ 'a\nb'|indent(2,true) }}
{{ {'a':1}|items|list }}
{% for x in y %}{% endfor %}ok
{% for x in none %}{% endfor %}ok
{% for x in 3 %}{% endfor %}ok
{{ ''.join(['a','b']) }}
{{ x() }}
{{ none() }}
{{ 'a'() }}
{{ [1,2]|sum }} {{ [1,2]|max }}
{{ 1|tojson }} {{ {'a':1.0,'b':[1,2]}|tojson(indent=2) }} {{ {}|tojson(indent=2) }} {{ []|tojson(indent=2)}} {{ '<é\u007f'|tojson }} {{ {'b':1,'a':2}|tojson(sort_keys=true) }} {{ [1,2]|tojson(separators=(',',':')) }} {{ {1:2,none:3,true:4}|tojson }}
{{ x|upper }}|{{ none|upper }}|{{ none|trim }}|{{ 5|replace('5','6') }}
{{ 'aXbX'|replace('X','y',1) }}
{{ [{'r':'a'},{'r':'b'}]|selectattr('r','equalto','a')|list }} {{ [1,0]|select|list }} {{ [1,2]|reject('odd')|list}} {{ [{'r':1}]|map(attribute='r')|list }} {{ [{}]|map(attribute='q',default='z')|list }}
{% if []|map('upper') %}T{% endif %}
{% set g=['a']|map('upper') %}{{g|join}}{{g|join}}|{{ g|length }}
{{ 1 is sequence }}{{ 'a' is sequence }}{{ {} is sequence }}{{ 'a' is iterable }}{{ {} is mapping }}{{ 1 is number }}{{ true is number }}{{ true is integer }}{{ 1.0 is float }}{{ x is iterable }}{{ x is sequence }}{{ {}.items() is sequence }}{{ range(2) is sequence }}
a␤  {% if true %}␤  b␤  {% endif %}␤c␤
a {%- if true -%}  b  {%- endif %} c
  {{- 'x' }}  y␤{# c #}␤z
{%+ if true %}x{% endif +%}␤y
  {% raw %}{{ x }}{% endraw %}␤z
{% set x = 'a␤b' %}{{x}}␍␤q
{{ "a" "b" }}
{{ 1_000 }} {{ 0x1F }} {{ 0b11 }} {{0o17}} {{ 1.5e3 }}
{{ 1.5.x }}|{{ [1].0 }}|{{ [[1,2]].0.1 }}
{{ 'é'|upper }} {{ 'ß'|upper }} {{ 'éa'|length }} {{ 'İ'|lower|length }}
{% for i in range(3) %}{% if i==1 %}{% continue %}{% endif %}{{i}}{% endfor %}{% for i in range(3) %}{% if i==1 %}{% break %}{% endif %}{{i}}{% endfor %}
{{ range(1000000) }}
{{ 'a' is string is defined }}
{{ x is y is z}}
{{ 'ab' < 'b' }} {{ 1 < 'a' }}
{{ [1,'a']|sort }}
{{ {'a':{'b':1}}|length }}
{{ 'a'|e }}{{ '<&>"\''|e }}
{{ 'abc'.startswith(('x','a')) }} {{ 'abcb'.find('b') }} {{ 'abcb'.rfind('b')}} {{ 'abcb'.count('b')}} {{ 'a-b-c'.rsplit('-',1) }} {{ 'a\nb\r\nc'.splitlines() }} {{ 'a-b'.partition('-')}} {{ '7'.zfill(3) }} {{ '12'.isdigit() }} {{ 'abc'.removeprefix('a')}} {{'xxaxx'.strip('x')}}
{{ loop.index }}
{% for i in [1,2] %}{{ loop.cycle('a','b') }}{{ loop.changed(i) }}{% endfor %}
{% macro f() %}{{ caller() }}{% endmacro %}{% call f() %}X{% endcall %}
{% do x %}
{% block a %}B{% endblock %}
{{ dict(a=1) }} {{ dict({'a':1},b=2) }}
{{ [1,2,3]|batch(2)|list }}
{{ 3 is eq 3 }} {{ 3 is sameas 3 }} {{ none is sameas none }}
{{ x is callable }} {{ range is callable }}
{{ 'A' is upper }}
{% if x is not defined or x is none %}u{% endif %}
{{ ([1,2]|list)[0] }}
{{ 'x' if none else 'y' }}
{{ 10|string|length }}
{{ 'a'|string|list }}
{{ 'abc'|reverse }} {{ [1,2]|reverse|list }}
{{ {'a':1}.keys()|list }}
{{ 1 ~ 2 + 3 }}
{{ 2 + 3 ~ 4 }}
{{ -2 ** 2 }}
{{ 2 ** 3 ** 2 }}
{{ not 1 in [2] }}
{{ -'a' }}
{{ 1/0 }}
{{ [1,2] == [1,2.0] }} {{ {'a':1}=={'a':1} }} {{ (1,)==[1] }}
{{ x|list }} {{ x|join }} {{ x|first }} {{ x|last }} {{ x|items|list }}
{{ x|int }}
{{ none|int }} {{ none|length }}
{{ none|list }}
{{ 'a'.split('') }}
{% set x=1 %}{% if true %}{% set x=2 %}{% endif %}{{x}}
{{ none ~ 1.5 ~ true }}
{{ 'a' if x }}
{{ {'a':none}.a is none }}{{ {}.a is none }}
{{ x[0] }}
{{ none[0] }}|
{{ 5[0] }}|
{{ 'abc'['x'] }}|
{{ 'abc'[none] }}|
{{ {'a':1}[['x']] }}|
{{ [1,2][true] }}
{{ [1,2]['0'] }}|
{{ 'abc'[1.0] }}|
{{ 'a' in {'a':1} }} {{ 1 in [1.0] }} {{ true in [1] }}
{{ [1,2]|tojson(indent=0) }}
{{ 'x'|indent(width='--', first=true) }}
{{ 1.0|string }} {{ 1e100 }} {{ 123456789.123456789 }} {{ 0.1+0.2 }} {{ 1e15 }} {{ 100.0 }} {{ -0.0 }} {{ 5e-324 }}
{{ 'tEst-of (this) it\'s'|title }}
{{ [[1,2],[3,4]]|map('first')|list }}{{ ['a']|map('replace','a','b')|list }}
{{ [{'a':{'b':1}}]|map(attribute='a.b')|list }}
{{ [{'a':2},{'a':1}]|sort(attribute='a') }} {{ [2,1]|sort(reverse=true)}}
{{ {'b':1,'A':2}|dictsort }} {{ {'b':1,'A':2}|dictsort(true) }} {{ {'b':1,'a':2}|dictsort(by='value') }} {{ {'b':1,'a':2}|dictsort(false,'value',true) }}
{{ [{'k':1,'v':2},{'k':1,'v':3}]|groupby('k') }}
{{ 'abc'|center(9) }}|
{{ 'foo bar'|wordcount }}
{% for x in [1,2,3] %}{{ loop.revindex }}{{ loop.revindex0 }}{{loop.index0}} {% endfor %}
{% for k in {'a':1} %}{{k}}{% endfor %}{% for c in 'hé' %}{{c}},{% endfor %}
{% for a,b in [[1,2],(3,4)] %}{{a}}{{b}}{% endfor %}
{% for a,b in [[1]] %}{{a}}{% endfor %}
{% set ns = namespace() %}{% for i in [1] %}{% set ns.a = i %}{% endfor %}{{ns.a}} {{ ns.zz is defined }}
{{ namespace(1) }}
{{ raise_exception('boo') }}
{{ f(1) }}
{{ {'f':1}.f(1) }}
{% macro m(a) %}{{a}}{% endmacro %}{{ m(1,2) }}
{% macro m(a) %}{{a}}{% endmacro %}{{ m(b=2) }}
{% macro m(a) %}{{a}}{% endmacro %}{{ m(1,a=2) }}
{% macro m(x) %}{% if x > 0 %}{{x}}{{ m(x-1) }}{% endif %}{% endmacro %}{{ m(3) }}
{% for i in [1,2] %}{% macro m() %}{{i}}{% endmacro %}{{ m() }}{% endfor %}
{% if x %}{% macro q() %}A{% endmacro %}{% endif %}{{ q is defined }}
{% set x %}  a {% endset %}[{{x}}]{% set y | trim %}  a {% endset %}[{{y}}]
{{ ' a '|trim }}{{ 'xax'|trim('x') }}
{{ 1 and 0 }} {{ 0 or 'a' }} {{ '' or none }} {{ 1 and 2}}
{{ 'a,b'|replace(',', '␤') }}
{{ 'a' == 'a' == true }}
{{ [1,2,3][-2:] }} {{ 'héé'[1:2] }} {{ 'abc'[10:] }} {{ [1,2,3][::-2] }} {{ [1,2,3][2:0:-1] }}
{{ {'a':1}|attr('a') }}|
{{ '%.2f|%5d|%-3s|%03d|%x|%r|%%' % (1.234, 3, 'a', 7, 255, 'q') }}
{{ '%s' % none }} {{ '%s' % [1] }}
{{ 'a%' }}
{{ 'x'.join([1]) }}
{{ ['a',1]|join(x) }}
{{ 3 * x }}
{{ x < 1 }}
{{ -x }}
{{ not x }}
{{ 'abc'|list|last }}
{{ (1,2)|first }} {{ (1,2)|length }}
{{ {'a':1}.items()|list|length }} {{ {'a':1}.items()|length }} {{ {'a':1}.values()|sum }} {{ {'a':1}.items()|first }}
{{ 'a'|default }}|{{ x|default }}|{{ x.y|default('q') }}
{{ none|default('q') }}
{{ {}.x.y|default('q') }}
{{ 'abc'.x.y|default('q') }}
{{ (x.y is defined) }}
{{ 'Ab'.swapcase() }} {{ 'ab c'.capitalize() }} {{ 'a1'.isalnum() }} {{ ''.isdigit() }} {{ 'ab'.isalpha() }} {{ ' '.isspace() }} {{ 'ab'.center(6,'*') }} {{ 'ab'.ljust(4) }}| {{ 'ab'.rjust(4) }} {{ 'a.b'.rpartition('.') }} {{ 'A'.casefold() }} {{ 'ab'.index('b') }} {{ 'abc'.find('c', 1) }} {{ 'aaa'.replace('a','b',2) }} {{ 'abc'.endswith('c') }}
{{ 'ab'.index('z') }}
{{ [1,2,1].count(1) }} {{ [1,2].index(2) }}
{{ x is none }} {{ x is true }} {{ 1 is true }} {{ true is true }} {{ none is false }} {{ 1 is boolean }}
{% if x is defined and x %}a{% elif true %}b{% else %}c{% endif %}
{{ a.b.c if a is defined else 'no' }}
{%- for m in [1,2] -%}␤  {{ m }}␤{%- endfor -%}␤
{% if true %}␤  {% if true -%}␤ x␤  {%- endif %}␤{% endif %}␤␤
{{ 'a' }}␤{{ 'b' }}␤
{#- c -#}␤  x
a {#- c #} b
{# x #}␤␤{# y #}␤ z␤
␤␤{%- if true %} x{% endif %}
  {%- set a = 1 %}␤  {{- a }}␤
x␤   {{ 1 }}
x␤   {# c #}␤ y
{% generation %}a{% endgeneration %}
{{ 'a' 'b' ~ 'c' }}
{{ [1,2,][0] }} {{ {'a':1,}['a'] }} {{ dict(a=1,) }}
{{ true.x }}|
{{ loop.x is defined }}
{{ {'a':1,'a':2} }}
{{ {1:'a','1':'b'}[1] }}
{{ {1:'a'}[true] }} {{ {1.0:'a'}[1] }}
{{ {[1]:2} }}
{{ 'a' > 'A' }} {{ 'é' > 'z' }}
{{ [3,1,2]|max }} {{ ['b','A']|min }} {{ []|max }}|
{{ 'x' * -1 }}|{{ 3 * 'ab' }}
{{ 1.5 // 0.4 }} {{ -1.5 % 1 }} {{ 5.0 / 2 }} {{ 2 ** 0.5 }} {{ 3 - 1.0 }}
{{ 7 | float }} {{ 'x'|float }} {{ '1e3'|float }} {{ 'nan'|float }} {{ 'inf'|float }}
{{ '0x1f'|int(0,16) }} {{ ' 12 '|int }} {{ '1_0'|int }} {{true|int}} {{ '-5'|int }}
{{ 'abc'|upper is upper }} {{ 'a' is lower }} {{ [] is sequence }} {{ none is iterable}} {{ 5 is in [5] }}
{{ ['a','b']|reverse|join }}
{{ 1|tojson|length }}
{{ '\\n' }} {{ '\'' }} {{ "\"" }} {{ '\u00e9' }} {{ '\101' }}
{{ 'a' | upper() }} {{ 'a'.upper( ) }}
{{ foo|default(bar)|default('z') }}
{{ 5 is not none }}
{% for x in [1,2,3] %}{% if loop.first %}F{% elif loop.last %}L{% endif %}{{ ',' if not loop.last }}{% endfor %}
{% for m in [1,2,3] %}{% set x = loop.index %}{% if x == 2 %}{% set x = 9 %}{% endif %}{{x}}{% endfor %}
{{ 'x␤y' | tojson }}
{%if true%}a{%endif%}
{{'a'}}{{-1}}{{ 1 -1 }}
{{ {'a' : {'b' : [1, {'c': 2}]}}.a.b[1].c }}
{{ ([]+[1])|length }}
{{ ['a']|join|upper ~ 'x' }}
{{ 'a'|safe }}
{{ 'x' is not string }}
{{ 1 if 0 else 2 if 0 else 3 }}
{{ (1 if 0 else 2) + 3 }}
{{ 4 % 3 ~ '!' }}
{{ text|upper }} {{ text|length }} {{ text[1:4] }} {{ text[-5:] }} {{ text|replace('l','L') }} {{ text.split('o') }}
{{ list|sum }} {{ list|first }} {{ list[-1] }} {{ list|reverse|list }} {{ list|join(', ') }} {{ 2 in list }} {{ list|map('string')|join('+') }}
{{ map|tojson }} {{ map|tojson(indent=4) }} {{ map }} {{ map.a }} {{ map.c.d }} {{ map['c']['d'] }} {{ map.zz is defined }}
{% for k, v in map.items() %}{{ k }}={{ v }};{% endfor %}
{% for k, v in map|dictsort %}{{ k }}={{ v }};{% endfor %}
{% for k, v in map|items %}{{ loop.index }}{{ k }}{{ ", " if not loop.last else "" }}{% endfor %}
{% for p in people if p.age > 2 %}{{ p.name }}{% if not loop.last %}, {% endif %}{% else %}none{% endfor %}
{% for p in people %}{% if loop.previtem is defined %}{{ loop.previtem.name }}<{% endif %}{{ p.name }}{% endfor %}
{{ people|selectattr('age','equalto',3)|map(attribute='name')|join(' ') }} {{ people|rejectattr('at')|map(attribute='name')|list }} {{ people|selectattr('at','defined')|list|length }}
{{ people|map(attribute='at.city')|select('defined')|list }} {{ people|map(attribute='at.city', default='?')|join }}
{{ people|sort(attribute='name',reverse=true)|map(attribute='name')|join }} {{ people|sort(attribute='age,name')|length }}
{{ people|groupby('age') }}
{{ people|sum(attribute='age') }} {{ people|max(attribute='age') }} {{ words|sort }} {{ words|sort(case_sensitive=true) }} {{ words|min }}
{% set ns = namespace(found=false, items=[]) %}{% for p in people %}{% if p.name == 'Bob' %}{% set ns.found = true %}{% set ns.items = ns.items + [p.name] %}{% endif %}{% endfor %}{{ ns.found }}{{ ns.items }}
{% macro show(p, open='<', close='>') -%}␤  {{ open }}{{ p.name }}{{ close }}␤{%- endmacro %}{{ show(people[0]) }}{{ show(people[1], close=')') }}{{ show(p=people[2], open='[') }}
{% macro outer(x) %}[{{ inner(x) }}]{% endmacro %}{% macro inner(x) %}{{ x }}!{% endmacro %}{{ outer('a') }}
{% macro m() %}{{ varargs|length }}{{ kwargs|length }}{% endmacro %}{{ m() }}{{ m(1,2) }}{{ m(a=1) }}
{% macro m(a) %}{{ a }}{{ caller('x') }}{% endmacro %}{% call(y) m(1) %}<{{ y }}>{% endcall %}
{% macro m(a) %}{% if caller is defined %}c{% else %}n{% endif %}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}
{% set x = 1 %}{% with x = 2, y = x %}{{ x }}{{ y }}{% set x = 3 %}{{ x }}{% endwith %}{{ x }}
{% set x %}{% for i in range(3) %}{{ i }}{% endfor %}{% endset %}{{ x }}{{ x|length }}
{% set x | upper | replace('A', 'b') %}xay{% endset %}{{ x }}
{% filter upper | trim %}  {{ text }}  {% endfilter %}|
{% generation %}{{ text }}{% set z = 1 %}{% endgeneration %}{{ z is defined }}
{%- if yes -%}␤ a ␤{%- elif no -%}b{%- else -%}c{%- endif -%}␤␤ d ␤
{% if yes %}␤  a␤{% else %}␤  b␤{% endif %}␤c
   {% if yes %}   a   {% endif %}   ␤  {% if no %}␤x␤  {% endif %}␤y
{%- for i in list %}␤    {{- i }}␤    {%- if not loop.last %}, {% endif %}␤{%- endfor %}␤
␉{% if yes %}␤␉{{ n }}␤␉{% endif %}␤z
a␍␤{% if yes %}␍␤b␍␤{% endif %}␍␤c␍d
{# a #}␤b␤  {# c #}␤d{#- e -#}␤ f {#+ g +#}␤h
{% raw -%} {{ x }} {%- endraw %} {% raw %}{% if %}{% endraw %}␤b
a  {%- raw %} x {% endraw -%}  b
{{ '{{' }}{{ '}}' }}{{ '{%' }}{{ "#}" }}
{{ {'a': {'b': 1}}}}{{ {'a':{}} }}
{% set d = {'a': 1, 'b': {'c': [1, 2]}} %}{{ d.b.c[1] }}{{ d['a'] }}{{ d.get('z', 'q') }}{{ d.b.get('c') }}{{ 'a' in d }}
{{ 'yes' if n > 2 else 'no' }}{{ 'a' if no }}{{ ('x' if no) is defined }}
{{ n + 1 }} {{ n - 1 }} {{ n * f }} {{ n / 2 }} {{ n // 2 }} {{ n % 2 }} {{ n ** 2 }} {{ -n }} {{ +n }} {{ f|int }} {{ f|round }} {{ f|string }}
{{ 1 < n <= 3 }} {{ n == 3.0 }} {{ n != 3 }} {{ not n > 3 }} {{ n is number and n is not string }} {{ n in (1, 3) }} {{ n not in [1] }}
{{ nil }} {{ nil is none }} {{ nil|default('x') }} {{ nil|default('x', true) }} {{ nil ~ 'a' }} {{ nil == none }} {{ [nil] }}
{{ undefd }} {{ undefd is defined }} {{ undefd|default('x') }} {{ undefd ~ 'a' }} {{ undefd == nil }} {{ undefd|length }} {{ undefd|list }} {{ undefd or 'y' }}
{{ ''.join(words) }} {{ ', '.join(words) }} {{ words|join('-')|lower }} {{ words|map('upper')|list }} {{ words|map('length')|sum }} {{ words|unique|list }}
{{ '  a b '.strip() }}|{{ '  a '.lstrip() }}|{{ ' a  '.rstrip() }}|{{ 'xxaxx'.lstrip('x') }} {{ 'a,b,c'.split(',')[-1] }} {{ 'a b  c '.split() }} {{ ' a b c'.rsplit(none, 1) }} {{ 'a  b c'.split(none, 1) }} {{ 'a</think>b</think>c'.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') }}
{{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x','bc')) }} {{ 'abc'.startswith('b', 1) }} {{ 'abcabc'.find('c', 3) }} {{ 'abc'.replace('', '-') }} {{ 'aaa'.replace('a', 'b', 2) }} {{ 'aaa'|replace('', '.') }}
{{ 'hello world'.title() }} {{ 'hello wORLD'|title }} {{ 'ÀÉÎ'.lower() }} {{ 'straße'.upper() }} {{ 'ǆ'.title() }} {{ 'hello'.capitalize() }} {{ 'a-b c'|title }}
{{ 'a\tb\\n\x41\u00e4\U0001F600\101\'' }} {{ "a\"b" }} {{ 'a\
{{ "multi␤line" }}␤{{ 'x'␤ ~ 'y' }}
{{ '\\d' }} {{ '\d' }} {{ '\q\w' }}
{{ "é"|tojson }} {{ "é"|tojson(ensure_ascii=true) }} {{ "😀"|tojson(ensure_ascii=true) }} {{ "a\"b\\c\n\t\u0001\u007f/"|tojson }}
{{ {'a': 1.0, 'b': 1e20, 'c': 1.5e-7, 'd': -0.0, 'e': 0.1}|tojson }} {{ [1e15, 1e16, 123456789012345678, 1e22] }}
{{ [[], {}, [[]], {'a': []}]|tojson(indent=2) }}
{{ list|tojson(separators=(',', ':')) }} {{ {'b': 1, 'a': 2}|tojson(sort_keys=true, indent=1) }} {{ 'x'|tojson(indent=4) }} {{ (1, 2)|tojson }}
{{ list|batch(2)|list }} {{ list|batch(2, 'x')|list }} {{ 5.55|round(1) }} {{ 5.4|round(0,'ceil') }} {{ 5.6|round(method='floor') }} {{ -7|abs }} {{ 1234.5678|round(2) }}
{{ 'a b c'|wordcount }} {{ 'a'|center(5) }}| {{ 'ab'|center(5) }}| {{ 'x'.center(4) }}| {{ 'ab'.center(5,'*') }} {{ '42'.zfill(5) }} {{ '-42'.zfill(5) }} {{ 'ab'.ljust(4, '.') }} {{ 'ab'.rjust(4, '.') }}
{{ '%s is %d years, %.1f' % ('Bob', 5, 1.25) }} {{ '%05.2f|%-6s|%+d|%x|%r' % (3.14159, 'ab', 5, 255, 'q') }} {{ '%s'|format('a') }} {{ '%s%%' % 5 }}
{{ '{} and {}'.format('a', 2) }} {{ '{1}{0}'.format('a', 'b') }} {{ '{x}{{}}'.format(x=1) }}
{{ 'a' is in 'abc' }} {{ 3 is odd }} {{ 4 is even }} {{ 9 is divisibleby(3) }} {{ 'x' is eq('x') }} {{ 2 is gt 1 }} {{ 2 is lessthan(3) }} {{ 'AB' is upper }} {{ 'ab' is lower }}
{{ yes is true }} {{ yes is boolean }} {{ n is integer }} {{ f is float }} {{ map is mapping }} {{ list is sequence }} {{ list is iterable }} {{ text is iterable }} {{ nil is iterable }} {{ list is not mapping }}
{{ list is string or text is string }} {{ undefd is not defined and yes }} {{ 'none' is none }} {{ map.b is defined and map.b is number }}
{{ range(5)|list }} {{ range(2, 8, 3)|list }} {{ range(5, 0, -2)|list }} {{ range(0)|list }} {{ range(3)|length }} {{ range(n)[1] }} {{ range(4)|last }}
{% for i in range(1, 6) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}
{% for i in range(2) %}{% for j in range(3) %}{% if j == 1 %}{% break %}{% endif %}{{ i }}{{ j }}{{ loop.index }} {% endfor %}{{ loop.index }};{% endfor %}
{% for a, b in [(1, 2), (3, 4)] %}{{ a }}{{ b }}{{ loop.cycle('x', 'y') }}{% endfor %}{% for (a, b) in [(1, 2)] %}{{ a }}{% endfor %}
{% for c in text %}{{ c }}{{ '|' if not loop.last }}{% endfor %}
{% for i in list[1:] %}{{ i }}{% endfor %}{% for i in list[::-1] %}{{ i }}{% endfor %}{% for m in list[:-1] + [9] %}{{ m }}{% endfor %}
{% set a, b = list[:2] %}{{ a }}{{ b }}{% set (c, d) = (5, 6) %}{{ c }}{{ d }}
{% set x = 1 %}{% for i in list %}{% set x = x + i %}{{ x }},{% endfor %}{{ x }}
{% set x = 'a' %}{% if yes %}{% set x = 'b' %}{% set y = 'c' %}{% endif %}{{ x }}{{ y }}
{% if not undefd %}a{% endif %}{% if undefd is defined and undefd.x %}b{% endif %}{% if text and list and map and n %}c{% endif %}{% if [] or {} or '' or 0 or 0.0 or () or nil %}d{% endif %}
{{ (map.a + [1])|length }} {{ [1] + [2] == [1, 2] }} {{ (1,) + (2,) }} {{ 'ab' * 2 }} {{ [0] * 3 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 'Z' < 'a' }}
{{ text|default('x')|upper|lower|trim|length }} {{ 'x'|default }}{{ ''|default('e', boolean=true) }}
{{ list[10] is defined }}{{ map['q'] is defined }}{{ text.foo is defined }}{{ text[50] is defined }}{{ n.foo is defined }}{{ nil.foo is defined }}
{{ list[1:2] }} {{ list[:] }} {{ list[::2] }} {{ list[-100:100] }} {{ text[::-2] }} {{ list[2::-1] }} {{ text[3:1] }}|{{ list[n:] }} {{ list[none:2] }}
{{ 'true' if 1 == 1.0 == true else 'false' }} {{ {'a': 1}.keys()|list }} {{ {'a': 1}.values()|list }} {{ {'a': 1}.items()|list }} {{ {'a': 1}|list }} {{ {'a': 1}.items() }}
{{ namespace(a=1).a }} {{ dict(a=1, b=2)|tojson }} {{ dict({'x': 1}, y=2) }} {{ namespace({'q': 5}).q }}
{{ list|select('odd')|list }} {{ list|reject('gt', 1)|list }} {{ list|select('in', [2, 9])|list }} {{ ['', 'a', none]|select|list }} {{ list|select('divisibleby', 2)|first }}
{{ 'it''s' }} {{ 'a' "b" 'c' }}
{{ "x" if "a" in text else "y" }} {{ "wö" in text }} {{ "z" not in text }} {{ text.count('l') }} {{ text.index('w') }} {{ text.rfind('l') }} {{ text.partition(' ') }} {{ text.upper().lower().title() }}
{{ text | truncate_not_there }}
{% unknowntag %}
{{ text
{% if yes %}a
{% for x in list %}
{{ 'abc }}
{# never closed
{% endif %}
{% if yes %}{% endfor %}
{{ list.append(4) }}
{{ map.update({'x': 1}) }}
{{ map.pop('b') }}
{{ undefd.x }}
{{ undefd() }}
{{ undefd + 1 }}
{{ text + 1 }}
{{ text.nope() }}
{{ 1 is in 5 }}
{{ nil|length }}
{{ 5|first }}
{{ {1, 2} }}
{{ a b }}
{{ (1, 2 }}
{{ [1, 2 }}
{{ 1 if }}
{% set 5 = 1 %}
{% set true = 1 %}
{% set x.y = 1 %}
{% for in list %}{% endfor %}
{% macro f(a, b=1, c) %}{% endmacro %}
{% break %}
{{ range(200000) }}
{{ raise_exception('stop') }}
{{ 5 // 0 }} 
{{ 'x'|tojson(5, 6, 7, 8, 9) }}
{{ text|replace('a') }}
{{ [1, 'a']|sort }}
{{ list|map('nofilter')|list }}
{{ list|map()|list }}
{{ list|select('notest')|list }}
{{ x is notest }}
{{ text.split('') }}
{{ '%d' % 'a' }}
{{ '%s %s' % 'a' }}
{{ '%q' % 1 }}
{{ '{} {}'.format(1) }}
{{ 1 == }}
{{ . }}
{{ $ }}
{{ 'a' ? 1 }}
{{ f(**map) }}
{% macro m(a, b=2) %}{{ a }}{{ b }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(*list) }} {{ m(*[1], **{'b': 5, 'c': 6}) }} {{ m(0, *list) }} {{ dict(z=2, **{'q': 1}) }} {{ range(*[1, 3])|list }}
{{ dict(**5) }}
{{ range(*undefd2) }}
{{ range(*list, *list) }}
{{ dict(**{1: 2}) }}
{{ -text }}
{{ not }}
{{ {'a' 1} }}
{{ undefd|tojson }}
{{ range(1, 2, 0) }}
{{ list[::0] }}
{{ list['a':] }}
{{ {[]: 1} }}
{{ '\x4' }}
{{ '\N{DASH}' if 0 }}
{% call text() %}{% endcall %}
{% call 5 %}{% endcall %}
{{ 3 is divisibleby 0 }}
{% set a, b = 1 %}
{% set a, b = [1, 2, 3] %}
{% with %}a{% endwith %}
{% block x %}{{ text }}{% endblock x %}{% block y %}b{% endblock %}
{% if yes: %}a{% endif %}
{{ text.__class__.__mro__ }}|
{{ ''|first|default('empty') }} {{ []|last|default('none') }}
{{ [3, 1, 2]|sort|first }} {{ 'cab'|sort|join }} {{ {'b': 1, 'a': 2}|sort }} {{ 'abc'|list }} {{ 'abc'|last }} {{ 'hello'|unique|join }}
{% for item in [1, 2, 3]|reverse %}{{ item }}{% endfor %}{% for x in 'ab'|reverse %}{{ x }}{% endfor %}
{% if list|selectattr('x') %}truthy{% endif %}{% if list|select('gt', 5)|list %}no{% endif %}
{{ nil|selectattr('a')|list }} {{ 0|map('upper')|list }} {{ no|select|list }} {{ ''|rejectattr('a')|list }}
{{ 5|select|list }}
{{ words|sort(attribute='x') }} {{ (yes)|round }} {{ f is odd }} {{ 4.0 is even }} {{ 'abc' % [] }} {{ list.copy() }}
{{ n[1:] }}
{{ map[1:] }}
{{ nil|indent }}
{{ [] in map }}
{{ undefd|dictsort }}
{{ (1, 2).copy() }}
{% for i in list %}{% continue %}{% else %}e{% endfor %}{% for i in list %}{% break %}{% else %}f{% endfor %}{% for i in list %}{% if i == 2 %}{% break %}{% endif %}{% else %}g{% endfor %}
{{ ' a b '.split(none, 1) }} {{ ' a b '.rsplit(none, 1) }} {{ 'a  b '.split(' ') }} {{ 'a b'.split(' ', 0) }}
{{ 'line1\nline2\n\nline3'|indent(2) }}|{{ 'a\nb'|indent(2, true) }}|{{ 'a\n\nb'|indent(2, blank=true) }}|{{ 'a\nb'|indent('>>') }}|{{ 'a\n'|indent }}
{{ 'a\nb\r\nc\n'.splitlines() }} {{ 'a\nb'.splitlines(true) }} {{ '12'.isdigit() }} {{ 'a1'.isalnum() }} {{ 'A'.isupper() }} {{ 'a b'.islower() }} {{ '  '.isspace() }} {{ 'é'.isalpha() }} {{ '١'.isdigit() }}
{{ 'foobar'.removeprefix('foo') }} {{ 'foobar'.removesuffix('bar') }} {{ 'foo'.removeprefix('x') }} {{ 'a.b.c'.rpartition('.') }} {{ 'abc'.partition('x') }} {{ 'abc'.rpartition('x') }} {{ 'aXbX'.rindex('X') }} {{ 'AbC'.swapcase() }} {{ 'ABC'.casefold() }}
{{ '3'|int }} {{ '3.9'|int }} {{ 'x'|int(7) }} {{ 'ff'|int(base=16) }} {{ '0b11'|int(0, 2) }} {{ ''|int }} {{ [1]|int }} {{ none|int(5) }} {{ '1e3'|int }} {{ ' -7 '|int }} {{ '3.5'|float }} {{ 'q'|float(1.5) }} {{ none|float }} {{ yes|int }} {{ '1_000'|int }} {{ '__1'|int }}
{{ '<a href="x">&\'</a>'|e }} {{ '<b>'|escape }} {{ '<b>'|safe }} {{ text|string|length }} {{ 5|string ~ 5 }} {{ none|string }} {{ true|string|upper }} {{ [1, 'a']|string }}
{{ map|attr('b') is defined }} {{ people[0]['name'] }}{{ people[0].at.city }}{{ people[-1]['name'] }}{{ people[1].at is defined }} {{ people|length }} {{ people|first|length }}
{{ people[0] }} {{ people[0]|string }} {{ people[0]|tojson }} {{ people|tojson|length }}
{{ 1.0 }} {{ 1e3 }} {{ 1.5E+2 }} {{ 0x10 }} {{ 0b101 }} {{ 0o17 }} {{ 1_000_000 }} {{ 0.1 + 0.2 }} {{ 10 / 5 }} {{ 7 // 2.0 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 2 ** -1 }} {{ 7.5 % 2 }} {{ -7.5 // 2 }} {{ true + true }}
""".strip("\n").split("\n")


def main():
    env = environment()
    with open(sys.argv[1], "w") as f:
        for line in TEMPLATES:
            source = line.replace("␤", "\n").replace("␍", "\r").replace("␉", "\t")
            row = {"source": source}
            used = {k: v for k, v in VARIABLES.items() if k in source}
            if used:
                row["variables"] = used
            try:
                row["output"] = env.from_string(source).render(**used)
            except Exception:  # of any kind: jinja2 raises Python's own, too
                row["error"] = True
            f.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
