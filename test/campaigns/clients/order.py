"""A backend in Python: places an order with the client that OpenAPI Generator made, then looks at it."""

import json
import os
import sys

from quayside_client import ApiClient, Configuration, ListingsApi, OrdersApi
from quayside_client.exceptions import ApiException
from quayside_client.models import OrderLineBody, TakeOrderBody

configuration = Configuration(host=os.environ["QUAYSIDE_URL"] + "/api/v1")
configuration.access_token = os.environ["QUAYSIDE_TOKEN"]
client = ApiClient(configuration)
orders = OrdersApi(client)


def refused(call):
    """The code and the first field of a refusal by the service."""
    try:
        call()
    except ApiException as error:
        body = json.loads(error.body)["error"]
        return body["code"], body.get("fields", [{}])[0].get("field")
    return None, None


def does_not_fit(make):
    """Whether the client itself refuses a body, before anything is sent."""
    try:
        make()
    except (TypeError, ValueError):
        return True
    return False


def place(reference):
    listings = ListingsApi(client).list_listings(limit=200).data.items
    listing = next(one for one in listings if (one.stock or 0) > 10)
    line = OrderLineBody(id="1", sku=listing.sku, quantity=2, unit_price=listing.price, currency=listing.currency)
    order = TakeOrderBody(reference=reference, lines=[line])
    _, taken, _ = orders.take_order_with_http_info(order)
    _, repeated, _ = orders.take_order_with_http_info(order)
    other = TakeOrderBody(reference=reference, lines=[OrderLineBody(id="1", sku=listing.sku, quantity=3)])
    code, _ = refused(lambda: orders.take_order(other))
    twins = TakeOrderBody(reference="twins", lines=[line, line])
    _, field = refused(lambda: orders.take_order(twins))
    return {
        "taken": taken,
        "repeated": repeated,
        "isReused": code == "reference_reused",
        "field": field,
        "doesNotFit": [
            does_not_fit(lambda: TakeOrderBody(reference=" 1001", lines=[line])),
            does_not_fit(lambda: TakeOrderBody(lines=[line])),
            does_not_fit(lambda: OrderLineBody(id="1", sku="A", quantity=0)),
            does_not_fit(lambda: OrderLineBody(id="1", sku="A", quantity=1, unit_price="24,90", currency="EUR")),
            does_not_fit(lambda: OrderLineBody(id="1", sku="A", qty=1)),
        ],
    }


def show(reference):
    order = orders.view_order(reference).data
    return {"state": order.state, "keys": len(order.lines[0].keys)}


command, name = sys.argv[1:]
print(json.dumps(place(name) if command == "place" else show(name)))
